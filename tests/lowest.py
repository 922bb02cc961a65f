"""The lowest versions that pyproject.toml allows, one pin per line: constraints of pip for `make test-lowest`."""

import re
import tomllib
from pathlib import Path

REQUIREMENT = re.compile(r"^([A-Za-z0-9._-]+)(?:\[.*\])?>=([0-9.]+)")


def pins(project: dict) -> list[str]:
    """name==version for everything that the project or one of its extras needs."""
    asked = {requirement for extra in project["optional-dependencies"].values() for requirement in extra}
    return sorted("==".join(_parts(requirement)) for requirement in {*project["dependencies"], *asked})


def _parts(requirement: str) -> tuple[str, str]:
    found = REQUIREMENT.match(requirement)
    if found is None:
        raise ValueError(
            f"dependencies in pyproject.toml must name a lowest version, as numpy>=2.2; got {requirement!r}"
        )
    return found[1], found[2]


if __name__ == "__main__":
    text = (Path(__file__).parents[1] / "pyproject.toml").read_text()
    print(*pins(tomllib.loads(text)["project"]), sep="\n")
