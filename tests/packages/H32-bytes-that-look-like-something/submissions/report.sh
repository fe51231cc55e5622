printf '{"verdict": "true", "reasons": [], "exit_code": 0}\n'
