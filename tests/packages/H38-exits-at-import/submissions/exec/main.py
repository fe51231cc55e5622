import solution

print(solution.answer())
