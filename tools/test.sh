#!/usr/bin/env bash
# Runs the tests of packages, or all tests: tools/test.sh [package…]. It prints the events of go test -json. With --compile, it
# only compiles what all tests need. The environment has GOFLAGS and GORACE (Makefile).
#
# Two invocations of go test run at the same time: one with the race detector, one without. Each runs two packages at the
# same time and links the next ones meanwhile. More at once would take longer: with four times as many threads as processors, the
# same tests have needed twice the processor time. The suites that start whole programs come first, the longest of them before
# the others: some use both processors, others mostly wait. The test build multiplies the time limits of the service
# (package protocol/timelimit), so none of them has to run alone.
set -uo pipefail

# A package that takes this long hangs: the slowest, that of the browser, has taken 14 minutes beside two others.
timeout=45m
# make check runs go vet, and more.
test=(go test -count=1 -vet=off -json -timeout "$timeout")
factor=-ldflags=-X=turnstone/protocol/timelimit.factor=8

suites=(./http ./cmd/turnstone ./persistence/turns ./providers/extract ./providers/code)
# These suites are clients of whole programs. The race detector would double their processor time, and the programs' own; the
# suites above run the same code with it, and make nightly runs these with it too. The programs that tests/crash starts have
# it: only their clients do not.
clients=(
	./tests/browser ./tests/e2e ./tests/crash ./tests/exhaustion ./tests/faults ./tests/failpoints ./tests/research ./tests/chaos
	./tests/restore
)
# These packages and their tests start no goroutines (layout_test.go checks that), so the race detector has nothing to find
# in them, and without it they need a tenth of the time. It is on in the tests of the packages that use them.
sequential=(
	./actors/passages ./actors/policy ./actors/modelinput ./actors/research/evidence ./actors/research/machine ./actors/turn/machine
	./actors/upload/machine ./http/markdown ./persistence/imports/source ./protocol/filetype ./protocol/foreign ./providers/charset
	./providers/media
)
# These tests compute for long, or send many requests one after the other to routes that other tests use with the race detector on.
# With it, they take three to ten times as much processor time. make nightly runs them with it.
long='^(TestExamplesAreValid|TestThePublishedDocumentsMatchTheCode|TestEveryOperationIsDescribed|TestEveryReferenceInTheDocumentIsDefined|TestForeignTakesAsLongAsMissing|TestTheMemoryOfARefusalIsProportionalToTheBody|TestTheTextsOfAnAccountAreLimited|TestAPostWithAnOptionalBodyAcceptsNone|TestTheAuthorizationMatrix|TestNoAccountSeesDataOfAnother|TestAHostileBodyIsRefusedBriefly|TestEvery400And422NamesTheWrongFields|TestAConnectionThatEndsAtAnyByteLeavesTheSessionUsable|TestForeignIsAsMuchWorkAsMissing|TestPagesOfTheLargestMessagesAreBoundedAndHaveEachMessageOnce|TestPagesOfTheLargestResearchTasksAndSourcesAreBounded|TestPagesOfTheLargestConversationsAreBounded|TestAQueueOfTheLargestFollowUpsIsPagedAndTheConversationShowsItsBeginning|TestAnExportImportedAndExportedAgainIsTheSame|TestABodyWithTooManyElementsIsRefusedBriefly|TestWhatIsKeptOfALongTextIsBounded|TestLongTextsAreFoundInBoundedMemory|TestEveryMatchIsOnOnePage|TestEveryMatchInAProjectIsOnOnePage|TestATextWithManyPositionsIsIndexed|TestContentsAreRead|TestARenditionIsSmallAndHasNothingOfTheOriginalButItsPixels|TestAnswersAreBounded|TestHostilePagesAreReadInBoundedTime|TestCodeThatUsesTooMuchFailsByItself)$'
computing=(./http ./persistence/search ./providers/extract ./providers/outbound ./providers/web/page ./providers/code)

module=$(go list -m)
others() { go list ./... | grep -vxF -f <(printf "$module%s\n" "${suites[@]#.}" "${clients[@]#.}" "${sequential[@]#.}"); }

if [[ ${1:-} == --compile ]]; then
	compile=(go list -export -test -deps) # it compiles into the cache, and links nothing
	"${compile[@]}" -race "${suites[@]}" $(others) >/dev/null &&
		"${compile[@]}" "${clients[@]}" "${sequential[@]}" "${computing[@]}" ./cmd/turnstone >/dev/null &&
		"${compile[@]}" -tags=failpoint ./cmd/turnstone >/dev/null &&
		"${compile[@]}" -race -tags=failpoint ./cmd/turnstone >/dev/null
	exit
fi

# The service refuses files while its disk is nearly full, so the tests that store files would fail without a visible cause.
folder=${TMPDIR:-/tmp}
free=$(($(df --output=avail -k "$folder" | tail -1) >> 20))
((free >= 8)) || echo "Only $free GiB are free in $folder. Tests that store files fail below 4 GiB, and the builds need up to 4 GiB." >&2

# The clusters and data folders that the tests start with are made once in a run; see package embeddedtest.
prepared=$(mktemp -d "$([[ -w /dev/shm && -z ${TMPDIR:-} ]] && echo /dev/shm || echo "${TMPDIR:-/tmp}")/turnstone-prepared-XXXXXX") || exit
trap 'rm -rf "$prepared"' EXIT
chmod 711 "$prepared" # the accounts of the private servers must be able to enter it
export TURNSTONE_TEST_PREPARED=$prepared

if [[ $# -gt 0 ]]; then
	"${test[@]}" -race "$factor" -p 3 -parallel 4 "$@"
	exit
fi

# Less garbage collection: the tests of http need an eighth less processor time.
export GOGC=300

# The packages that the seeded bugs change have been compiled when the clients end.
plain() {
	local failed=0
	env -u GOGC "${test[@]}" "$factor" -p 2 -parallel 4 "${clients[@]}" "${sequential[@]}" || failed=1
	"${test[@]}" -race "$factor" -run '^TestSeededBugsAreKilled$' . -args -mutants=some || failed=1
	return "$failed"
}

failed=0
plain >"$prepared/plain" &
"${test[@]}" -race "$factor" -p 2 -parallel 2 -skip "$long" "${suites[@]}" $(others) || failed=1
"${test[@]}" "$factor" -p 2 -parallel 2 -run "$long" "${computing[@]}" || failed=1
wait $! || failed=1
cat "$prepared/plain"
exit "$failed"
