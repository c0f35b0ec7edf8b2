// What became of a message that the service does not have yet, and what can be done about it.
import { saidOf } from "../api/letter";
import { discardOutgoing, retryOutgoing, useLetters, waitForLimit, type Busy, type Letter, type Trouble } from "../api/outbox";
import { draftBack } from "../composer/drafts";
import { lengthOf, longestSteering } from "../composer/length";
import { wishFocus } from "../composer/wishes";
import { Button } from "../controls/button";
import { useSecondsUntil } from "../controls/countdown";
import { Icon } from "../controls/icon";
import { useSpeech, type Speech } from "../words/speech";
import type { Word } from "../words/words";

/** Of an Outgoing or a Letter by its key; nothing while it is simply on its way. */
export function LetterNotice({ letterKey }: { letterKey: string }) {
  const letter = useLetters(({ list }) => list.find((one) => one.key === letterKey));
  if (letter === undefined || letter.state === "accepted" || letter.trouble === null) return null;
  return <Notice letter={letter} trouble={letter.trouble} />;
}

function Notice({ letter, trouble }: { letter: Letter; trouble: Trouble }) {
  const { say, intl } = useSpeech();
  const seconds = useSecondsUntil(letter.state === "sending" ? 0 : trouble.until);
  const refused = letter.state === "refused";
  return (
    <div className="flex flex-col gap-1.5 text-sm">
      <p role={refused ? "alert" : "status"} className={`flex items-start gap-2 ${refused ? "text-danger" : "text-amber"}`}>
        <Icon name={refused ? "warning" : "clock"} size={16} />
        <span>{reasonOf(letter, trouble, say, (parts) => intl.formatList(parts, { type: "conjunction" }))}</span>
      </p>
      {/* Counted down for the eye; a reader is told once, above. */}
      {seconds > 0 && (
        <p aria-hidden="true" className="ps-6 text-soft tabular-nums">
          {say(trouble.status === 429 ? "composer.limit" : "composer.letter.next_try", { seconds })}
        </p>
      )}
      <Remedies letter={letter} trouble={trouble} early={seconds > 0 && trouble.status === 429} />
    </div>
  );
}

/** The words for a trouble. What the service says itself is repeated only where the app knows nothing better. */
export function reasonOf(letter: Letter, trouble: Trouble, say: Speech["say"], list: (parts: string[]) => string): string {
  if (trouble.status === 0 && trouble.code !== "outcome_unknown") return say(navigator.onLine ? "composer.letter.unreachable" : "composer.letter.offline");
  if (trouble.status === 401) return say("composer.letter.signed_out");
  if (trouble.status === 404) return say("composer.letter.gone");
  if (trouble.status === 413) return say("composer.letter.too_long");
  if (trouble.code === "rate_limited") return say(letter.state === "refused" ? "composer.letter.limited" : "composer.letter.limited.patient");
  if (trouble.status >= 500) {
    if (trouble.down.length > 0) return say("composer.letter.down", { parts: list(trouble.down.map((part) => say(partWords[part] ?? "composer.part.other"))) });
    return say("composer.letter.unavailable");
  }
  return say(codeWords[trouble.code] ?? "composer.letter.refused", { detail: saidOf(trouble) });
}

const partWords: Readonly<Record<string, Word>> = {
  persistence: "composer.part.persistence",
  cache: "composer.part.cache",
  model_access: "composer.part.model_access",
  object_storage: "composer.part.object_storage",
  malware_scanning: "composer.part.malware_scanning",
  disk: "composer.part.disk",
};

const codeWords: Readonly<Record<string, Word>> = {
  turn_in_progress: "composer.letter.turn_in_progress",
  conversation_head_moved: "composer.letter.head_moved",
  steering_closed: "composer.letter.steering_closed",
  steering_not_deliverable: "composer.letter.steering_closed",
  too_many_live_turns: "composer.letter.too_many_turns",
  budget_reached: "composer.letter.budget_reached",
  too_many_inputs: "composer.letter.too_many_waiting",
  too_many_follow_ups: "composer.letter.too_many_waiting",
  outcome_unknown: "composer.letter.unknown",
};

/** What can be done. early: a limit is not over yet. */
function Remedies({ letter, trouble, early }: { letter: Letter; trouble: Trouble; early: boolean }) {
  const { say } = useSpeech();
  const { key, state } = letter;
  const limited = trouble.code === "rate_limited";
  const busy = trouble.code === "turn_in_progress";
  const closed = trouble.code.startsWith("steering_");
  const moved = trouble.code === "conversation_head_moved";
  const again = (changes?: { busy: Busy }) => {
    retryOutgoing(key, changes);
    // The button that was pressed goes. A touch screen is spared its keyboard.
    if (matchMedia("(hover: hover)").matches) wishFocus();
  };
  return (
    <div className="flex flex-wrap items-center gap-1 ps-4">
      {state === "refused" && (busy || closed) && letter.branch === undefined && (
        <Button look="quiet" icon="queue" onClick={() => again({ busy: "queue" })}>
          {say("composer.letter.queue")}
        </Button>
      )}
      {state === "refused" && trouble.turn && letter.branch === undefined && lengthOf(letter.text) <= longestSteering && (
        <Button look="quiet" icon="steer" onClick={() => again({ busy: "steer" })}>
          {say("composer.letter.steer")}
        </Button>
      )}
      {moved && (
        <Button look="quiet" onClick={() => again({ busy: letter.busy })}>
          {say("composer.letter.anyway")}
        </Button>
      )}
      {state === "refused" && (!busy || letter.branch !== undefined) && !closed && !moved && !early && trouble.status !== 404 && trouble.status !== 413 && (
        <Button look="quiet" icon="retry" onClick={() => again()}>
          {say("composer.letter.retry")}
        </Button>
      )}
      {state === "waiting" && trouble.status !== 401 && !limited && (
        <Button look="quiet" icon="retry" onClick={() => again()}>
          {say("composer.letter.again")}
        </Button>
      )}
      {limited && <Patience letter={letter} />}
      {letter.text === "" ? (
        <Button look="quiet" icon="trash" onClick={() => void discardOutgoing(key)}>
          {say("composer.letter.discard")}
        </Button>
      ) : (
        <Button
          look="quiet"
          icon="undo"
          onClick={() => {
            draftBack(letter.conversationID, discardOutgoing(key));
            wishFocus();
          }}
        >
          {say("composer.letter.back")}
        </Button>
      )}
    </div>
  );
}

function Patience({ letter }: { letter: Letter }) {
  const { say } = useSpeech();
  return (
    <label className="flex min-h-9 items-center gap-2 px-2 text-soft pointer-coarse:min-h-11">
      <input
        type="checkbox"
        className="size-4 accent-tide"
        checked={letter.patient}
        onChange={({ target: { checked } }) => waitForLimit(letter.key, checked)}
      />
      {say("composer.limit.patient")}
    </label>
  );
}
