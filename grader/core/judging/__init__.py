"""What a judge is asked, what it answers, and how its answers are voted on. Pure."""
