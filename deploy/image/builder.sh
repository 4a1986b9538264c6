#!/usr/bin/env bash
# Makes a local image with the name of the official Go builder that the Dockerfile asks for, where no registry can be reached: the
# Go release as the go command fetches it, busybox, this machine's CA bundle and the modules of go.mod. It stands in for building
# only; nothing of it but the CA bundle gets into the image of rolltap. Needs root, buildah, busybox (static), Go.
#
#   deploy/image/builder.sh            make it; one that is there for the same go.mod, and the official one, are kept
#   deploy/image/builder.sh --remove   remove it, so that the official one is pulled again
set -euo pipefail

repo=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
release=$(sed -n 's/^ARG GO_VERSION=//p' "$repo/Dockerfile")
name="docker.io/library/golang:$release-bookworm"
if [ "${1:-}" = --remove ]; then exec buildah rmi "$name"; fi

wants=$(cat "$repo/go.mod" "$repo/go.sum" "${BASH_SOURCE[0]}" | sha256sum | cut -d' ' -f1)
if has=$(buildah inspect --type image --format '{{index .OCIv1.Config.Labels "rolltap.standin"}}' "$name" 2>/dev/null); then
  if [ -z "$has" ] || [ "$has" = "$wants" ]; then
    echo "$name is there"
    exit 0
  fi
fi

goroot=$(cd "$repo" && GOTOOLCHAIN="go$release" go env GOROOT)
work=$(mktemp -d)
container=$(buildah from scratch)
trap 'buildah rm "$container" >/dev/null; chmod -R u+w "$work"; rm -rf "$work"' EXIT
root=$(buildah mount "$container")
mkdir -p "$root"/{bin,etc/ssl/certs,tmp,root,usr/local,go/pkg}
chmod 1777 "$root/tmp"
cp "$(command -v busybox)" "$root/bin/busybox"
for applet in sh mkdir chmod cat cp ls rm; do ln -s busybox "$root/bin/$applet"; done
cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
cp -r "$goroot" "$root/usr/local/go"
chmod -R u+w "$root/usr/local/go"
(cd "$repo" && GOTOOLCHAIN="go$release" GOMODCACHE="$work" go mod download)
cp -r "$work" "$root/go/pkg/mod"
buildah umount "$container" >/dev/null
buildah config --env PATH=/usr/local/go/bin:/bin --env GOPATH=/go --env GOTOOLCHAIN=local --label "rolltap.standin=$wants" "$container"
buildah commit --quiet "$container" "$name" >/dev/null
echo "made $name"
