"""Task files: what loads, and that every mistake is told with its place, all at once, in words."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from grader.core.captured import Captured
from grader.core.cases import ProgramBehaves, ProgramCase
from grader.core.conditions import AllOf, Not
from grader.core.tri import Tri
from grader.errors import TaskError
from grader.formats.task_file import load_task

HEAD = "conditions:\n  - condition_type: program_behaves\n"


def write(folder: Path, text: str | bytes) -> Path:
    file = folder / "task.yaml"
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return file


def problems(folder: Path, text: str | bytes) -> list[str]:
    file = write(folder, text)
    with pytest.raises(TaskError) as caught:
        load_task(file)
    return [str(problem).replace(f"{file}:", "") for problem in caught.value.problems]


def program(folder: Path, text: str) -> ProgramBehaves:
    write(folder, text)
    (found,) = load_task(folder).programs()
    return found


def first_case(folder: Path, lines: str) -> ProgramCase:
    return program(folder, f"{HEAD}    cases:\n      - {lines}\n").cases[0]


def case_problems(folder: Path, lines: str) -> list[str]:
    return problems(folder, f"{HEAD}    cases:\n      - {lines}\n")


def test_the_task_of_the_specification_loads(tmp_path: Path) -> None:
    write(
        tmp_path,
        """\
objective: The program prints its input in ROT13.
runtime_profiles: [python]
limits: {cpu_time_s: 3, memory_bytes: 64 MiB}
conditions:
  - condition_type: program_behaves
    repetitions: 3
    cases:
      - name: letters
        stdin: "Hello\\n"
        stdout: {equals: "Uryyb\\n"}
      - name: arguments and files
        arguments: ["--in", "data.txt", {base64: /w==}]
        files: {data.txt: "abc"}
        stdout: {lines: ["nop"]}
        exit_code: any
        output_files: {log.txt: {contains: "done"}}
        limits: {cpu_time_s: 2}
""",
    )
    task = load_task(tmp_path)
    assert task == load_task(tmp_path / "task.yaml")
    assert task.runtime_profiles == ("python",)
    assert task.limits.memory_bytes == 64 * 2**20
    letters, files = task.programs()[0].cases
    assert letters.stdin == b"Hello\n"
    assert files.arguments == (b"--in", b"data.txt", b"\xff")
    assert files.exit_code is None
    assert files.output_files[0].name == b"log.txt"
    assert files.limits.cpu_time_s == 2


def test_values_come_from_files_beside_the_task(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "raw").write_bytes(bytes(range(256)))
    (tmp_path / "data" / "value.json").write_text('{"a": [1, 2]}')
    case = first_case(
        tmp_path,
        """stdin: {file: data/raw}
        arguments: [{file: data/value.json}]
        environment: {V: {file: data/value.json}}
        files: {copy: {file: data/raw}}
        stdout: {any_of: [{equals: {file: data/raw}}, {not: {json: {file: data/value.json}}}]}
        output_files: {out: {contains: {file: data/raw}}}""",
    )
    assert case.stdin == bytes(range(256)) == case.files[0].content
    assert case.arguments == (b'{"a": [1, 2]}',)
    assert case.environment == {"V": b'{"a": [1, 2]}'}
    assert case.stdout is not None
    assert case.stdout.to_plain()["any_of"][1] == {"not": {"json": '{"a":[1,2]}'}}  # type: ignore[index]


def test_numbers_that_are_expected_are_exact_however_many_digits_they_have(tmp_path: Path) -> None:
    case = first_case(
        tmp_path,
        "{stdout: {json: [0.12345678901234567890123, 1e400]}, "
        "stderr: {tokens: '1', float_absolute: 0.00000000000000000001}, limits: {cpu_time_s: 1.00000000000000000001}}",
    )
    assert case.stdout is not None
    assert case.stderr is not None
    assert case.stdout.match(Captured.whole(b"[0.12345678901234567890123, 1e400]")).value is Tri.TRUE
    assert case.stdout.match(Captured.whole(b"[0.12345678901234568, 1e400]")).value is Tri.FALSE
    assert case.stderr.match(Captured.whole(b"1.00000000000000000001")).value is Tri.TRUE
    assert case.stderr.match(Captured.whole(b"1.000000000000000000011")).value is Tri.FALSE
    assert case.limits.cpu_time_s == 1


def test_json_null_is_a_value(tmp_path: Path) -> None:
    case = first_case(tmp_path, "stdout: {json: null}")
    assert case.stdout is not None
    assert case.stdout.to_plain() == {"json": "null"}


def test_composites_hold_programs(tmp_path: Path) -> None:
    write(
        tmp_path,
        """\
conditions:
  - condition_type: all_of
    conditions:
      - condition_type: not
        condition: {condition_type: program_behaves, cases: [{stdout: {equals: a}}]}
      - condition_type: program_behaves
        cases: [{stdout: {equals: b}}]
""",
    )
    (both,) = load_task(tmp_path).conditions
    assert isinstance(both, AllOf)
    assert isinstance(both.conditions[0], Not)
    assert len(load_task(tmp_path).programs()) == 2


def test_cases_from_a_folder(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    for name, text in {"b.in": "2", "b.ans": "four", "a.in": "1", "a.ans": "two", "notes.txt": "", ".in": ""}.items():
        (data / name).write_text(text)
    found = program(
        tmp_path,
        HEAD
        + """\
    cases: [{name: written, stdout: {equals: ""}}]
    cases_from:
      stdin: data/*.in
      stdout: {tokens: data/*.ans, case: ignore}
      files: {input.txt: data/*.in}
      output_files: {out.txt: data/*.ans, log.txt: {contains: data/*.in}}
      arguments: ["-q"]
      limits: {cpu_time_s: 1}
""",
    )
    assert [case.name for case in found.cases] == ["written", "a", "b"]
    a = found.cases[1]
    assert a.stdin == b"1" == a.files[0].content
    assert a.stdout is not None
    assert a.stdout.to_plain() == {"tokens": "two", "case": "ignore"}
    assert [file.expected.to_plain() for file in a.output_files] == [{"equals": "two"}, {"contains": "1"}]
    assert a.arguments == (b"-q",)
    assert a.limits.cpu_time_s == 1


def test_cases_from_folders_named_by_their_folder(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / "tests" / name).mkdir(parents=True)
        (tmp_path / "tests" / name / "in").write_text(name)
    found = program(tmp_path, HEAD + "    cases_from: {stdin: tests/*/in, exit_code: any}\n")
    assert [(case.name, case.stdin) for case in found.cases] == [("one", b"one"), ("two", b"two")]


def test_cases_from_tells_what_does_not_pair(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    for name in ("1.in", "1.ans", "2.in", "3.ans"):
        (data / name).write_text("")
    assert problems(tmp_path, HEAD + "    cases_from: {stdin: data/*.in, stdout: data/*.ans}\n") == [
        "3:25: 'data/3.ans' has no partner 'data/3.in'",
        "3:44: 'data/2.in' has no partner 'data/2.ans'",
    ]
    assert problems(tmp_path, HEAD + "    cases_from: {stdin: data/*.inn, stdout: data/*.ans}\n")[0].startswith(
        "3:25: 'data/*.inn' fits no file"
    )


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("data/1.in", "must have exactly one *"),
        ("'*/*.in'", "must have exactly one *"),
        ("../*.in", "leaves the task's folder"),
        ("/etc/*.conf", "is absolute"),
        ("out/*.in", "leaves the task's folder through a link"),
        ("nothing/*.in", "cannot be read: No such file or directory"),
        ("5", "expected a pattern such as data/*.in, not the number 5"),
    ],
)
def test_bad_patterns(tmp_path: Path, pattern: str, said: str) -> None:
    folder = tmp_path / "task"
    folder.mkdir()
    (folder / "out").symlink_to("/etc")
    (found,) = problems(folder, HEAD + f"    cases_from: {{stdin: {pattern}}}\n")
    assert found.startswith("3:25: ")
    assert said in found


def test_a_mistake_in_a_case_template_is_told_once(tmp_path: Path) -> None:
    for name in ("1.in", "2.in"):
        (tmp_path / name).write_text("")
    text = HEAD + "    cases_from: {stdin: '*.in', exit_code: 300}\n"
    assert problems(tmp_path, text) == ["3:44: exit_code: must be at most 255, not 300"]


def test_all_problems_at_once_in_the_order_of_the_file(tmp_path: Path) -> None:
    found = problems(
        tmp_path,
        """\
objectiv: x
runtime_profiles: python
limits: {cpu_tme_s: 3}
conditions:
  - condition_type: program_behaves
    repetitions: 0
    cases:
      - nam: letters
        stdin: 5
      - stdout: {equal: "x"}
        exit_code: "0"
  - condition_type: program_behave
""",
    )
    assert found == [
        "1:1: unknown key 'objectiv'\n  mend: did you mean objective?",
        "2:19: runtime_profiles: expected a list, not the text 'python'\n  mend: write [python]",
        "3:10: unknown key 'cpu_tme_s'\n  mend: did you mean cpu_time_s?",
        "6:18: repetitions: must be at least 1, not 0",
        "8:9: unknown key 'nam'\n  mend: did you mean name?",
        "9:16: stdin: expected text in quotes, not the number 5",
        "10:18: unknown key 'equal'\n  mend: did you mean equals?",
        "11:20: exit_code: expected a number from 0 to 255, a list of them, or any; not the text '0'",
        "12:21: unknown condition_type 'program_behave'\n  mend: did you mean program_behaves?",
    ]


@pytest.mark.parametrize(
    ("line", "place", "said"),
    [
        ("stdin: 5", "4:16", "expected text in quotes, not the number 5"),
        ("stdin: 1.50", "4:16", "expected text in quotes, not the number 1.5"),
        ("stdin: true", "4:16", "expected text in quotes, not true"),
        ("stdin: no", "4:16", "no is read differently"),
        ("stdin: 010", "4:16", "010 is read differently"),
        ("stdin: 2024-01-01", "4:16", "2024-01-01 is read differently"),
        ("stdin:", "4:9", "'stdin' has no value"),
        ("stdin: {base65: aGk=}", "4:16", "expected a string or {base64: ...}"),
        ("stdin: {base64: '!'}", "4:16", "not valid base64"),
        ("arguments: [a, 5]", "4:24", "expected text in quotes, not the number 5"),
        ("arguments: [a, ~]", "4:24", "expected text, not nothing"),
        ('arguments: ["\\0"]', "4:20", "an argument cannot contain NUL"),
        ("arguments: -v", "4:20", "arguments: expected a list, not the text '-v'"),
        ("environment: {A: 1}", "4:26", "A: expected text in quotes, not the number 1"),
        ('environment: {"A=B": "1"}', "4:22", "a name has no '='"),
        ("files: {a: 1}", "4:20", "a: expected text in quotes, not the number 1"),
        ("files: {../a: x}", "4:17", "must not contain empty parts, '.' or '..'"),
        ("files: {/a: x}", "4:17", "is absolute"),
        ("stdout: hello", "4:17", "expected a matcher, not plain text\n  mend: write {equals: ...}"),
        ("stdout: {equals: 5}", "4:26", "equals: expected text in quotes, not the number 5"),
        ("stdout: {equals: a, contains: b}", "4:17", "expected one matcher, found equals, contains"),
        ("stdout: {}", "4:17", "not an empty mapping"),
        ("stdout: {equals: a, newline: any}", "4:29", "unknown key 'newline'\n  mend: did you mean newlines?"),
        ("stdout: {equals: a, newlines: some}", "4:39", "newlines: expected 'exact' or 'any', not the text 'some'"),
        ("stdout: {regex: '(?=a)'}", "4:17", "not a pattern that RE2 takes"),
        ("stdout: {regex: {file: x}}", "4:25", "regex cannot be read from a file"),
        ("stdout: {all_of: []}", "4:26", "all_of: must have at least 1"),
        ("stdout: {all_of: {equals: a}}", "4:26", "all_of is a list of matchers, not a mapping"),
        ("stdout: {not: {equals: 5}}", "4:32", "equals: expected text in quotes"),
        ("output_files: {a: {any_of: [{equals: a}, {contains: ''}]}}", "4:61", "contains: every value contains"),
        ("exit_code: 300", "4:20", "must be at most 255, not 300"),
        ("exit_code: [0, -1]", "4:24", "must be at least 0, not -1"),
        ("exit_code: []", "4:20", "an empty list of exit codes allows none"),
        ("limits: {cpu_time_s: 0}", "4:30", "a limit must be greater than 0, not 0"),
        ("limits: {wall_time_s: -1}", "4:31", "a limit must be greater than 0, not -1"),
        ("limits: {memory_bytes: .nan}", "4:32", "a limit must be a finite number, not nan"),
        ("limits: {memory_bytes: .inf}", "4:32", "a limit must be a finite number, not inf"),
        ("limits: {memory_bytes: 64 MB/s}", "4:32", "expected a number of bytes such as 1048576 or '64 MiB'"),
        ("limits: {files: 1.5}", "4:25", "expected a whole number, not 1.5"),
        ("limits: 5", "4:17", "limits is a mapping, not the number 5"),
        ("name: 5", "4:15", "name: expected text in quotes, not the number 5"),
        ("5", "4:9", "a case is a mapping, not the number 5"),
    ],
)
def test_a_mistake_in_a_case(tmp_path: Path, line: str, place: str, said: str) -> None:
    (found,) = case_problems(tmp_path, line)
    assert found.startswith(f"{place}: "), found
    assert said in found


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        ("", "1:1", "the file is empty"),
        ("[]", "1:1", "a task is a mapping, not a list"),
        ("objective: x", "1:1", "'conditions' is missing"),
        ("conditions: []", "1:13", "the list of conditions is empty"),
        ("conditions: {}", "1:13", "conditions are a list, not a mapping"),
        ("conditions: [{}]", "1:14", "'condition_type' is missing"),
        ("conditions: [{condition_type: 5}]", "1:31", "unknown condition_type 5"),
        ("conditions: [{condition_type: program_behaves}]", "1:14", "no cases"),
        ("conditions: [{condition_type: program_behaves, cases: []}]", "1:55", "no cases"),
        ("conditions: [{condition_type: program_behaves, cases: {}}]", "1:55", "cases are a list, not a mapping"),
        ("conditions: [{condition_type: all_of, conditions: []}]", "1:51", "the list of conditions is empty"),
        ("conditions: [{condition_type: not}]", "1:14", "'condition' is missing"),
        ("a: 1\na: 2\n", "2:1", "the key 'a' stands here for the second time"),
        ("a: \tb\n\tc: d", "2:1", "not valid YAML"),
        (b"a: \xff\n", "1", "not UTF-8"),
        ("[" * 60, "1:51", "nested deeper than 50 levels"),
        ("a: &a [x]\nb: [" + "*a, " * 21 + "]", "2:85", "more than 20 aliases"),
        ("a: &a [x, x, x, x]\n" + "".join(
            f"{chr(98 + n)}: &{chr(98 + n)} [{', '.join(['*' + chr(97 + n)] * 4)}]\n" for n in range(9)
        ), "7:8", "more than 20 aliases"),
        ("runtime_profiles: []\n" + HEAD + "    cases: [{}]", "1:19", "an empty list of profiles runs nothing"),
        ("runtime_profiles: [a, a]\n" + HEAD + "    cases: [{}]", "1:19", "a profile is named twice"),
        ("runtime_profiles: [5]\n" + HEAD + "    cases: [{}]", "1:20", "expected text in quotes, not the number 5"),
        (HEAD + "    repetitions: 1.5\n    cases: [{}]", "3:18", "repetitions is a whole number"),
        (HEAD + "    repetitions: {at_least: 3}\n    cases: [{}]", "3:18", "repetitions is a whole number"),
        (HEAD + "    repetitions: true\n    cases: [{}]", "3:18", "repetitions is a whole number"),
        (HEAD + "    case: [{}]", "3:5", "unknown key 'case'\n  mend: did you mean cases?"),
    ],
)  # fmt: skip
def test_a_mistake_in_the_whole(tmp_path: Path, text: str | bytes, place: str, said: str) -> None:
    found = problems(tmp_path, text)[0]
    assert found.startswith(f"{place}: "), found
    assert said in found


def test_a_byte_order_mark_is_taken(tmp_path: Path) -> None:
    write(tmp_path, b"\xef\xbb\xbf" + HEAD.encode() + b"    cases: [{}]\n")
    assert len(load_task(tmp_path).conditions) == 1


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("../secret", "leaves the task's folder"),
        ("/etc/passwd", "is absolute"),
        ("link", "leaves the task's folder through a link"),
        ("sub/link/secret", "leaves the task's folder through a link"),
        ("loop", "cannot be read"),
        ("fifo", "is a FIFO, not a regular file"),
        ("sub", "is a folder, not a regular file"),
        ("missing", "cannot be read: No such file or directory"),
        ("a\\0b", "is not a file name"),
        ("", "is not a file name"),
        ("sub//x", "must not contain empty parts"),
        ("huge", "is larger than 64 MiB"),
    ],
)
def test_files_that_a_task_may_not_name(tmp_path: Path, name: str, said: str) -> None:
    folder = tmp_path / "task"
    (folder / "sub").mkdir(parents=True)
    (tmp_path / "secret").write_text("s")
    (folder / "link").symlink_to("../secret")
    (folder / "sub" / "link").symlink_to("../..")
    (folder / "loop").symlink_to("loop")
    os.mkfifo(folder / "fifo")
    with (folder / "huge").open("wb") as file:
        file.truncate(64 * 2**20 + 1)
    (found,) = case_problems(folder, f'stdin: {{file: "{name}"}}')
    assert found.startswith("4:23: "), found
    assert said in found


def test_a_device_is_never_read(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match="is a device, not a regular file"):
        load_task("/dev/zero")
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(TaskError, match="is a FIFO, not a regular file"):
        load_task(tmp_path / "fifo")


def test_a_link_that_stays_inside_is_taken(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("x")
    (tmp_path / "alias").symlink_to("real")
    assert first_case(tmp_path, "stdin: {file: alias}").stdin == b"x"


def test_a_missing_task_says_what_to_name(tmp_path: Path) -> None:
    for path in (tmp_path / "nowhere", tmp_path, tmp_path / "a\x00b"):
        with pytest.raises(TaskError, match=r"(?s)no task here: .*mend: name a task file") as caught:
            load_task(path)
        assert caught.value.where is not None
        assert caught.value.where.file == str(path)


def test_a_task_of_more_than_64_mib_is_refused(tmp_path: Path) -> None:
    with (tmp_path / "task.yaml").open("wb") as file:
        file.truncate(64 * 2**20 + 1)
    with pytest.raises(TaskError, match="is larger than 64 MiB"):
        load_task(tmp_path)


def test_tool_conditions_are_known_and_their_mistakes_have_places(tmp_path: Path) -> None:
    (found,) = problems(tmp_path, "conditions:\n  - condition_type: tools_called\n    tools: [{name: 5}]\n")
    assert found.startswith("3:20: name: expected text in quotes, not the number 5")


def test_a_condition_that_names_no_case_of_the_task_has_its_place(tmp_path: Path) -> None:
    text = f"""{HEAD}    cases: [{{name: one}}]
  - condition_type: not
    condition:
      condition_type: tools_not_called
      case: two
      tools: [x]
"""
    assert problems(tmp_path, text) == ["7:13: no case is named 'two'\n  mend: cases are: one"]
    write(tmp_path, text.replace("case: two", "case: one"))
    assert len(load_task(tmp_path).leaves()) == 2
    write(tmp_path, "conditions:\n  - condition_type: tools_not_called\n    case: two\n    tools: [x]\n")
    assert load_task(tmp_path).programs() == ()  # for `grader score`, which says that evidence belongs to no case
