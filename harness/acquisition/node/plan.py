"""How an npm closure is installed in the sandbox and how it is started there.

npm gets a cache that holds exactly the files of the lock, found by their digest, and no network. Install scripts
run then, inside, and are recorded as the phase `install`.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence

from packaging.utils import canonicalize_name

from harness.acquisition.node.resolve import LockedPackage, NpmLock, content_path
from harness.acquisition.store import Store
from harness.model.base import JsonObject
from harness.model.target import Artifact, EntryPoint, InputFile, InstallPlan

#: The lines of Node in the image, in order of preference.
NODES = ("22", "24", "20")

_SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def environment(node: str) -> dict[str, str]:
    """The environment in which `node` and `npm` are those of the line chosen."""
    return {"PATH": f"/opt/node/{node}/bin:/app/node_modules/.bin:{_SYSTEM_PATH}"}


def node_program(node: str) -> str:
    """The node program of the line chosen."""
    return f"/opt/node/{node}/bin/node"


def artifacts(packages: Sequence[LockedPackage], fetched: Mapping[str, tuple[str, int]]) -> tuple[Artifact, ...]:
    """The packages as artifacts; one that is installed at several places is one artifact."""
    found = {
        Artifact(
            name=package.name,
            version=package.version,
            filename=f"{package.name.replace('/', '-').lstrip('@')}-{package.version}.tgz",
            sha256=fetched[package.location][0],
            size=fetched[package.location][1],
        )
        for package in packages
    }
    return tuple(sorted(found, key=lambda a: (a.name, a.version, a.filename)))


def input_files(
    store: Store, lock: NpmLock, manifest: str, fetched: Mapping[str, tuple[str, int]]
) -> tuple[InputFile, ...]:
    """The manifest, the lock, and npm's cache of the fetched files."""
    files = {
        f"npm-cache/_cacache/content-v2/{content_path(package)}": store.path(fetched[package.location][0])
        for package in lock.packages
    }
    for name, text in (("package.json", manifest), ("package-lock.json", lock.text)):
        files[name] = store.path(store.add_bytes(text.encode())[0])
    return tuple(InputFile(source=source, destination=name) for name, source in sorted(files.items()))


def install_steps(node: str) -> tuple[tuple[str, ...], ...]:
    """The steps that install `/input/package-lock.json` into /app."""
    npm = (f"/opt/node/{node}/bin/npm", "ci", "--prefix", "/app", "--offline", "--cache", "/input/npm-cache")
    quiet = ("--no-audit", "--no-fund", "--no-update-notifier", "--logs-max=0", "--omit=dev", "--loglevel=error")
    # Newer lines of npm run only approved scripts; what a user's older npm would run is what is to be seen here.
    scripts = ("--dangerously-allow-all-scripts",) if node == "24" else ()
    return (("cp", "package.json", "package-lock.json", "/app/"), (*npm, *quiet, *scripts))


def without_scripts(plan: InstallPlan) -> InstallPlan | None:
    """The same install without install scripts, for a closure with a native add-on that can't be built here.

    None when it is no install by npm, or has none already.
    """
    steps = tuple(
        (*(part for part in step if part != "--dangerously-allow-all-scripts"), "--ignore-scripts")
        if step[0].endswith("/bin/npm") and "ci" in step[1:2]
        else step
        for step in plan.steps
    )
    if steps == plan.steps or any("--ignore-scripts" in step for step in plan.steps):
        return None
    return plan.model_copy(update={"steps": steps})


def entry_points(name: str, entry: JsonObject, node: str, arguments: tuple[str, ...] = ()) -> tuple[EntryPoint, ...]:
    """The programs that the package `name` declares with `bin`, the likeliest server first.

    `entry` is the package's entry in the lock, where npm has made `bin` an object of names and paths.
    """
    bins = entry.get("bin")
    if isinstance(bins, str):
        bins = {name.split("/")[-1]: bins}
    if not isinstance(bins, dict):
        return ()
    own = canonicalize_name(name.split("/")[-1])

    def rank(program: str) -> tuple[bool, bool, bool, str]:
        plain = canonicalize_name(program)
        return (plain != own, "mcp" not in plain, "server" not in plain, program)

    found = []
    for program in sorted((str(program) for program in bins), key=rank):
        path = inner_path(bins[program])
        if path is not None:
            argv = (node_program(node), f"/app/node_modules/{name}/{path}", *arguments)
            found.append(EntryPoint(name=program, argv=argv, source="bin"))
    return tuple(found)


def inner_path(path: object) -> str | None:
    """A path inside a package in its normal form; None for one that leads out of it or is none."""
    if not isinstance(path, str) or not path or "\x00" in path:
        return None
    normal = posixpath.normpath(path.lstrip("/"))
    return None if normal == ".." or normal.startswith("../") else normal
