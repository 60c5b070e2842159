#!/usr/bin/env bash
# Puts a pinned axe-core, Deque's accessibility checks, into .cache/axe. The script
# comes inside a Python package, of which nothing else is used.
#
# Needs the virtual environment that tools/envoy.sh makes.
set -euo pipefail

version=0.1.8 # of axe-playwright-python: axe-core 4.12.1

cd "$(dirname "$0")/.."
python=$(dirname "$(readlink -f .cache/bin/envoy)")/../../../../../bin/python
wheels=$(mktemp -d)
trap 'rm -rf "$wheels"' EXIT

"$python" -m pip download --quiet --disable-pip-version-check --no-deps \
	--only-binary :all: --dest "$wheels" "axe-playwright-python==$version"
"$python" -m zipfile -e "$wheels"/*.whl "$wheels/whole"
mkdir -p .cache/axe
mv "$wheels/whole/axe_playwright_python/axe.min.js" .cache/axe/axe.min.js
