"""Read the conda recipe with rattler-build's own parser, and render it for every platform that has wheels.

python tests/long/recipe.py
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

PLATFORMS = ["linux-64", "linux-aarch64", "osx-arm64", "osx-64", "win-64"]
# A channel says which ones; here any name does.
LIBRARIES = {"c_stdlib": ["sysroot"], "m2w64_c_stdlib": ["m2w64-sysroot"]}


def main() -> int:
    os.environ["GROUPOWL_VERSION"] = "1.2.3"
    from rattler_build import PlatformConfig, RenderConfig, Stage0Recipe, VariantConfig

    recipe = Stage0Recipe.from_file(str(Path(__file__).parents[2] / "recipe" / "recipe.yaml"))
    for name in PLATFORMS:
        config = RenderConfig(platform=PlatformConfig(target_platform=name))
        (variant,) = recipe.render(VariantConfig(LIBRARIES), config)
        package = variant.recipe.package
        print(f"{name}: {package.name} {package.version}")
        if (str(package.name), str(package.version)) != ("groupowl", "1.2.3"):
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
