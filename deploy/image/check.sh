#!/usr/bin/env bash
# Shows what the image is: two builds, from two copies of the checkout in different folders and with nothing reused, have one
# digest; every label is filled in; it holds four things and none of them is a shell; its binary is static and names its modules.
# About two minutes. Needs root, buildah, skopeo and Go; where no registry can be reached, run builder.sh first.
#
#   deploy/image/check.sh [ARCHIVE]   also writes the image as an OCI archive
set -euo pipefail

repo=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=../version.sh
source "$repo/deploy/version.sh"
export VERSION=$version REVISION=$revision SOURCE_DATE_EPOCH=$epoch BUILD_FLAGS="--no-cache ${BUILD_FLAGS:-}"
export SOURCE_URL=${SOURCE_URL:-https://example.invalid/rolltap} DOCUMENTATION_URL=${DOCUMENTATION_URL:-https://example.invalid/rolltap/docs}

work=$(mktemp -d)
container=''
clean_up() {
  [ -z "$container" ] || buildah rm "$container" >/dev/null
  buildah rmi localhost/rolltap:check-1 localhost/rolltap:check-2 >/dev/null 2>&1 || true
  rm -rf "$work"
}
trap clean_up EXIT
fail() { echo "FAILED: $*" >&2; exit 1; }

for n in 1 2; do
  copy="$work/checkout-$n/$(printf 'x%.0s' $(seq $((n * 10))))"
  mkdir -p "$copy"
  git -C "$repo" ls-files -z --cached --others --exclude-standard | (cd "$repo" && xargs -0 cp --parents -t "$copy")
  "$copy/deploy/image/build.sh" "localhost/rolltap:check-$n" >"$work/log" 2>&1 || { cat "$work/log"; fail "build $n"; }
  skopeo inspect --raw "containers-storage:localhost/rolltap:check-$n" | sha256sum | cut -d' ' -f1 >"$work/digest-$n"
done
cmp "$work/digest-1" "$work/digest-2" || fail "two builds, two digests"
echo "two builds, one digest: sha256:$(cat "$work/digest-1")"

config=$(skopeo inspect --config containers-storage:localhost/rolltap:check-1)
has() { grep -qF -- "$1" <<<"$(tr -d ' \n' <<<"$config")" || { echo "$config"; fail "the configuration lacks $1"; }; }
for label in title description version revision created source url documentation licenses vendor; do
  grep -Eq "\"org.opencontainers.image.$label\": \"[^\"]+\"" <<<"$config" || fail "the label $label is empty"
done
has '"User":"65532:65532"'
has '"Entrypoint":["/rolltap"]'
has '"Cmd":["serve"]'
has '"ExposedPorts":{"8080/tcp":{},"9464/tcp":{}}'
has '"StopSignal":"SIGTERM"'
has "\"created\":\"$created\""
echo "10 labels, user 65532, ports 8080 and 9464"

container=$(buildah from --pull-never localhost/rolltap:check-1)
root=$(buildah mount "$container")
found=$(cd "$root" && find . -mindepth 1 -printf '%p %y %m %U:%G\n' | sort)
want='./etc d 755 0:0
./etc/ssl d 755 0:0
./etc/ssl/certs d 755 0:0
./etc/ssl/certs/ca-certificates.crt f 644 0:0
./rollouts d 750 65532:65532
./rolltap f 755 0:0
./tmp d 1777 65532:65532'
# A mount of buildah shows empty folders that containers get at run time; they are no part of the layers.
[ "$(grep -Ev '^\./(dev|proc|run|sys|etc/(hosts|resolv.conf|mtab))( |/)' <<<"$found")" = "$want" ] || { echo "$found"; fail "other files than these are in it: $want"; }
if LC_ALL=C grep -aq '/lib64/ld-linux\|/lib/ld-musl' "$root/rolltap"; then fail "the binary wants a dynamic linker"; fi
echo "no shell, no library: $(wc -c <"$root/rolltap") bytes of binary, a CA bundle and two folders"

cp "$root/rolltap" "$work/rolltap"
"$repo/deploy/sbom.sh" "$work/rolltap" "$work/sbom.json"
[ -z "${1:-}" ] || skopeo copy --quiet containers-storage:localhost/rolltap:check-1 "oci-archive:$1"
