#!/usr/bin/env bash
# Writes the bill of materials of a built binary as CycloneDX, from what the linker left in it, and holds the two against each other.
#
#   deploy/sbom.sh BINARY OUTPUT.json
#
#   ROLLTAP_CACHE   where the tool is kept; default: ~/.cache/rolltap/ci
set -euo pipefail

tool_version=v1.10.0
binary=$1 out=$2
place=${ROLLTAP_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/rolltap/ci}/cyclonedx-gomod-$tool_version-$(go env GOVERSION)
tool="$place/cyclonedx-gomod"
[ -x "$tool" ] || GOBIN="$place" go install "github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@$tool_version"
"$tool" bin -json -noserial -notimestamp -std -output "$out" "$binary" 2>/dev/null

linked=$(go version -m "$binary" | awk '$1 == "dep" {print $2 "@" $3}' | sort)
listed=$(sed -n 's/.*"purl": "pkg:golang\/\([^?"]*\).*/\1/p' "$out" | grep -Ev '^(std|rolltap)(@|$)' | sort -u)
if [ "$linked" != "$listed" ]; then
  echo "the bill of materials differs from what is linked:" >&2
  diff <(echo "$linked") <(echo "$listed") >&2
  exit 1
fi
echo "bill of materials: $(wc -l <<<"$linked") modules and Go's standard library"
