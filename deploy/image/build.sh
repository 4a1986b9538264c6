#!/usr/bin/env bash
# Builds the image from the Dockerfile with buildah, with every label filled in and all times set to the commit's, so that the same
# commit gives the same digest anywhere.
#
#   deploy/image/build.sh                                      rolltap:VERSION and rolltap:latest
#   deploy/image/build.sh registry.example/rolltap:v1          another name
#   PLATFORM=linux/arm64 deploy/image/build.sh rolltap:arm64   another machine's; nothing is emulated
#
#   SOURCE_URL, DOCUMENTATION_URL, VENDOR   labels that are the publisher's to give
#   BUILDAH_ISOLATION=chroot                where there is no room for a container inside: in CI's own container
#   BUILD_FLAGS                             more flags for buildah, e.g. --no-cache
set -euo pipefail

repo=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=../version.sh
source "$repo/deploy/version.sh"

args=(--timestamp "$epoch" --pull=false --format oci --platform "${PLATFORM:-linux/$(go env GOHOSTARCH)}"
  --build-arg "VERSION=$version" --build-arg "REVISION=$revision" --build-arg "CREATED=$created")
for name in SOURCE_URL DOCUMENTATION_URL VENDOR; do
  [ -z "${!name:-}" ] || args+=(--build-arg "$name=${!name}")
done
tags=("$@")
[ ${#tags[@]} != 0 ] || tags=("rolltap:${version//+/-}" rolltap:latest)
for tag in "${tags[@]}"; do args+=(-t "$tag"); done
# shellcheck disable=SC2086 # flags are words
buildah bud "${args[@]}" ${BUILD_FLAGS:-} "$repo"
