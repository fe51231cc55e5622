const char *answer = "right";
