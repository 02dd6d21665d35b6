#!/usr/bin/env bash
# Makes the virtual environment and fetches what Spark needs. May be repeated; the second time is quick.
set -euo pipefail

python="${PYTHON:-python3}"
venv="${VENV:-.venv}"

fail() {
  printf 'setup: %s\n' "$1" >&2
  exit 1
}

require_python() {
  command -v "$python" >/dev/null || fail "no $python was found; install Python 3.11 or newer, or run: make setup PYTHON=/path/to/python"
  "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    fail "$("$python" --version) is too old; Icestream needs 3.11 or newer: make setup PYTHON=/path/to/python"
  "$python" -c 'import venv, ensurepip' 2>/dev/null || fail "$python has no venv module (Debian: apt-get install python3-venv)"
}

require_java() {
  local java="java"
  [ -n "${JAVA_HOME:-}" ] && java="$JAVA_HOME/bin/java"
  command -v "$java" >/dev/null ||
    fail "no Java was found; Spark needs Java 17 or 21 (Debian: apt-get install openjdk-17-jre-headless), or set JAVA_HOME"
  local major
  major="$("$java" -version 2>&1 | sed -nE 's/.*version "([0-9]+).*/\1/p' | head -n 1)"
  case "$major" in
    17 | 21) ;;
    *) fail "Java ${major:-of unknown version} was found; Spark needs 17 or 21: set JAVA_HOME to one of them" ;;
  esac
}

require_python
require_java

[ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
"$venv/bin/python" -m pip install --quiet --upgrade 'pip>=25.1' # knows dependency groups
"$venv/bin/python" -m pip install --quiet -c constraints.txt -e . --group dev
"$venv/bin/python" -m icestream.lake.jars >/dev/null
printf 'setup: ready; try %s/bin/icestream --help\n' "$venv"
