# Sourced by the scripts beside: version, revision, created (RFC 3339) and epoch (seconds) of the checkout in $repo. A checkout
# that differs from its commit says so in the version. Variables of the same names in capitals go before what git says.
# shellcheck shell=bash disable=SC2034,SC2154
revision=${REVISION:-$(git -C "$repo" rev-parse HEAD 2>/dev/null || echo unknown)}
version=${VERSION:-$(git -C "$repo" describe --tags --always --dirty 2>/dev/null || echo devel)}
epoch=${SOURCE_DATE_EPOCH:-$(git -C "$repo" log -1 --format=%ct 2>/dev/null || echo 0)}
created=$(date -u -d "@$epoch" +%Y-%m-%dT%H:%M:%SZ)
