// What there is to say below the field: how long the text is, what the service refused, when a limit ends.
import { saidOf } from "../api/letter";
import { useLetters, usePatience, type Trouble } from "../api/outbox";
import { useSpeech } from "../words/speech";
import { longestMessage } from "./length";
import { useAsked } from "./stop";

interface NotesProps {
  id: string;
  length: number;
  /** Why the service did not take the text that stands in the field again. */
  refused: Trouble | null;
  limit: { holds: boolean; seconds: number };
  /** The draft is on this device alone. */
  unsaved: boolean;
  turn: string | null;
}

export function Notes({ id, length, refused, limit, unsaved, turn }: NotesProps) {
  const { say } = useSpeech();
  const stop = useAsked(({ byID }) => (turn === null ? undefined : byID[turn]))?.refusal ?? null;
  return (
    <div id={id} className="flex flex-col gap-1 px-2 pt-1.5 text-xs text-soft empty:hidden">
      {length > longestMessage ? (
        <p role="alert" className="text-danger">
          {say("composer.length.over", { over: length - longestMessage })}
        </p>
      ) : (
        length > longestMessage * 0.9 && <p className="tabular-nums">{say("composer.length", { count: length, most: longestMessage })}</p>
      )}
      {refused !== null && (
        <p role="alert" className="text-danger">
          {refused.status === 413 ? say("composer.refused.length") : say("composer.refused.field", { detail: saidOf(refused) })}
        </p>
      )}
      {limit.seconds > 0 && <Limit seconds={limit.seconds} />}
      {stop !== null && <p role="status">{say(stop.status === 401 ? "composer.stop.signed_out" : "composer.stopping.again")}</p>}
      {unsaved && length <= longestMessage && <p role="status">{say("composer.draft.here")}</p>}
    </div>
  );
}

function Limit({ seconds }: { seconds: number }) {
  const { say } = useSpeech();
  const patient = usePatience((choice) => choice.patient);
  // A message that was refused asks by itself.
  const asked = useLetters(({ list }) => list.some((letter) => letter.trouble?.code === "rate_limited"));
  return (
    <div className="flex flex-wrap items-center gap-x-4 text-amber">
      <p role="status" className="sr-only">
        {say("composer.limit.soon")}
      </p>
      {/* Counted down for the eye; a reader is told once. */}
      <p aria-hidden="true" className="tabular-nums">
        {say("composer.limit", { seconds })}
      </p>
      {!asked && (
        <label className="flex min-h-8 items-center gap-2 text-soft pointer-coarse:min-h-11">
          <input type="checkbox" className="size-4 accent-tide" checked={patient} onChange={({ target: { checked } }) => usePatience.setState({ patient: checked })} />
          {say("composer.limit.patient")}
        </label>
      )}
    </div>
  );
}
