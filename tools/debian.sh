#!/usr/bin/env bash
# Installs the Debian packages that are missing. Each argument is package=proof, where proof is a file or a command that
# exists if the package is installed; a file may be a pattern. The services that apt installs are not started, because
# Turnstone runs private servers of its own.
set -euo pipefail

missing=()
for want in "$@"; do
	package=${want%%=*} proof=${want#*=}
	if [[ $proof == /* ]]; then
		compgen -G "$proof" >/dev/null || missing+=("$package")
	else
		command -v "$proof" >/dev/null || missing+=("$package")
	fi
done
[[ ${#missing[@]} -eq 0 ]] && exit 0

command -v apt-get >/dev/null || {
	echo "Missing: ${missing[*]}. This is not a Debian system: install them with your package manager and run make again." >&2
	exit 1
}
root=()
if [[ $EUID -ne 0 ]]; then
	if ! command -v sudo >/dev/null || { [[ ! -t 0 ]] && ! sudo -n true 2>/dev/null; }; then
		echo "Missing: ${missing[*]}. Run as root: apt-get install ${missing[*]}" >&2
		exit 1
	fi
	root=(sudo)
fi

echo "Installing ${missing[*]} …" >&2
log=$(mktemp)
policy=/usr/sbin/policy-rc.d policy_is_ours=
cleanup() {
	rm -f "$log"
	[[ -z $policy_is_ours ]] || "${root[@]}" rm -f "$policy"
}
trap cleanup EXIT
if [[ ! -e $policy ]]; then
	policy_is_ours=yes
	printf '#!/bin/sh\nexit 101\n' | "${root[@]}" install -m 755 /dev/stdin "$policy"
fi
clusters=/etc/postgresql-common/createcluster.conf
if [[ ! -e $clusters ]]; then # an existing file of the operator is not changed
	"${root[@]}" mkdir -p "${clusters%/*}"
	echo 'create_main_cluster = false' | "${root[@]}" install -m 644 /dev/stdin "$clusters"
fi
apt=("${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=120
	-o Dpkg::Options::=--force-confold)
if ! { "${apt[@]}" update && "${apt[@]}" install -y --no-install-recommends "${missing[@]}"; } </dev/null >"$log" 2>&1; then
	tail -n 20 "$log" >&2
	echo "Installing ${missing[*]} failed; see apt's output above." >&2
	exit 1
fi
