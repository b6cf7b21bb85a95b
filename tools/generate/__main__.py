"""Write the generated files: ``python -m tools.generate [--into FOLDER]``."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from tools.generate import (
    converters_module,
    descriptors_module,
    fields_module,
    json_schema,
    openapi,
    operations_module,
    types_module,
    v03,
)
from tools.generate.facts import Generation, Protocol
from tools.generate.proto import compile_descriptors, read_protocol

ROOT = Path(__file__).resolve().parents[2]
PROTO = ROOT / "proto" / "a2a.proto"
STATUS_PROTO = ROOT / "proto" / "rpc_status.proto"
V03_PROTO = ROOT / "proto" / "a2a_v03.proto"
PACKAGE = ROOT / "src" / "dragoman"
MODEL = PACKAGE / "model"

V1 = Generation("the protocol", "dragoman.model.types")


def render(protocol: Protocol) -> dict[str, str]:
    """All generated files of 1.0: path below the package's folder → text, Python not yet formatted."""
    files = [compile_descriptors(path).file[-1] for path in (STATUS_PROTO, PROTO)]
    return {
        "model/types.py": types_module.render(protocol, V1),
        "model/fields.py": fields_module.render(protocol, V1),
        "model/operations.py": operations_module.render(protocol),
        "model/schema/a2a.schema.json": json_schema.render(protocol),
        "model/schema/openapi.json": openapi.render(protocol),
        "bindings/grpc/descriptors.py": descriptors_module.render(PROTO.name, files),
        "bindings/grpc/converters.py": converters_module.render(protocol, V1),
    }


def render_v03(protocol: Protocol) -> dict[str, str]:
    """All generated files of 0.3, like those of 1.0."""
    file = compile_descriptors(V03_PROTO).file[-1]
    return {
        "compat/v03/types.py": types_module.render(protocol, v03.GENERATION),
        "compat/v03/fields.py": fields_module.render(protocol, v03.GENERATION),
        "compat/v03/grpc/descriptors.py": descriptors_module.render(V03_PROTO.name, [file]),
        "compat/v03/grpc/converters.py": converters_module.render(protocol, v03.GENERATION),
    }


def write(folder: Path) -> list[Path]:
    """Generate into ``folder`` and format; returns what was written."""
    written = []
    files = render(read_protocol(PROTO)) | render_v03(v03.read(V03_PROTO))
    for name, text in files.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
        written.append(target)
    _format([path for path in written if path.suffix == ".py"])
    return written


def _format(paths: list[Path]) -> None:
    ruff = [sys.executable, "-m", "ruff", "format", "--quiet", "--config", str(ROOT / "pyproject.toml")]
    subprocess.run([*ruff, *paths], check=True)


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--into", type=Path, default=PACKAGE, help="folder to write to")
    for path in write(parser.parse_args().into):
        print(path)


if __name__ == "__main__":
    main()
