#!/usr/bin/env bash
# Runs what takes too long for the gate, one step after the other, and prints a summary of all steps at the end. The
# output of each step is in tmp/nightly. It exits with 1 if a step failed.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
mkdir -p tmp/nightly

failed=0
summary=()
step() {
	local name=$1 result=passed
	shift
	echo "nightly: $name"
	SECONDS=0
	"$@" </dev/null >"tmp/nightly/$name.log" 2>&1 || result=failed
	summary+=("$(printf '%-8s %s %4d min' "$name" "$result" $(((SECONDS + 30) / 60)))")
	if [[ $result == failed ]]; then
		failed=1
		tail -n 20 "tmp/nightly/$name.log"
	fi
}

# The program of the last release or, without one, that of the previous commit.
old=$(git describe --tags --abbrev=0 HEAD^ 2>/dev/null) || old=$(git rev-parse HEAD^)

step bench make --no-print-directory bench BENCH='--out tmp/nightly/benchmarks.md' # first, on a host computer that does nothing else
step upgrade make --no-print-directory upgrade OLD="$old"
step walk go test -race -count=1 -timeout 1h -ldflags=-X=turnstone/protocol/timelimit.factor=8 -run '^TestNoAccountSeesDataOfAnother$' ./http -v -args -isolation.responses 50000
step exhaustion go test -count=1 -timeout 1h -ldflags=-X=turnstone/protocol/timelimit.factor=8 ./tests/exhaustion -v -args -exhaustion.operations=0
step long go test -race -count=1 -timeout 2h -p 1 -ldflags=-X=turnstone/protocol/timelimit.factor=8 ./http ./persistence/search ./providers/extract ./providers/outbound ./providers/web/page ./http/markdown ./providers/code
step clients go test -race -count=1 -timeout 2h -p 1 -ldflags=-X=turnstone/protocol/timelimit.factor=8 ./tests/browser ./tests/e2e ./tests/crash ./tests/faults ./tests/failpoints ./tests/research ./tests/chaos ./tests/restore
step models go test -race -count=1 -timeout 2h -ldflags=-X=turnstone/protocol/timelimit.factor=8 -run '^TestAKillAtAnyPointOfAnAnswerLosesNothing$' ./tests/failpoints -v -args -models.rounds=100
step imports go test -count=1 -timeout 1h -ldflags=-X=turnstone/protocol/timelimit.factor=8 -run '^TestAKillAtAnyStepOfAnImportLosesAndRepeatsNothing$' ./tests/e2e -v -args -imports.kills=0
step mutants make --no-print-directory mutants
step fuzz make --no-print-directory fuzz FUZZTIME=5m

printf '%s\n' '' "${summary[@]}"
exit "$failed"
