// The service does not answer, or cannot tell who is there. Says which, and tries again by itself.
import { useEffect, useState } from "react";
import { Refusal } from "../api/problem";
import { Button } from "../controls/button";
import { useSecondsUntil } from "../controls/countdown";
import { useSpeech } from "../words/speech";
import { Threshold } from "./threshold";

/** Milliseconds between tries by itself; spread, so that all that wait do not come at once. */
const pause = () => 5_000 + Math.random() * 5_000;

export function Unreachable({ refusal, again }: { refusal: unknown; again: () => void }) {
  const { say } = useSpeech();
  const known = refusal instanceof Refusal ? refusal : null;
  const [next, setNext] = useState(() => Date.now() + Math.max(known?.retryAfter ?? 0, pause()));
  const left = useSecondsUntil(next);
  useEffect(() => {
    if (left > 0) return;
    again();
    setNext(Date.now() + pause());
  }, [left, again]);
  useEffect(() => {
    window.addEventListener("online", again);
    return () => window.removeEventListener("online", again);
  }, [again]);
  const offline = known?.status === 0 && !navigator.onLine;
  return (
    <Threshold>
      <title>{say("app.name")}</title>
      <h1 className="text-xl font-semibold">{say(offline ? "rooms.away.offline" : known?.status === 0 ? "rooms.away.unreachable" : known?.status === 429 ? "rooms.away.limited" : "rooms.away.unavailable")}</h1>
      <p className="mt-2 text-soft">{say("rooms.away.kept")}</p>
      <div className="mt-6 flex items-center gap-4">
        <Button look="primary" onClick={again}>
          {say("rooms.away.again")}
        </Button>
        <span aria-hidden className="text-sm text-faint">
          {say("rooms.away.next", { seconds: left })}
        </span>
      </div>
    </Threshold>
  );
}
