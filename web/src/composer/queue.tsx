// What waits for its turn in a conversation, and what became of what steers its answer. All of it but what is still on its
// way from this device is the service's, so every device shows the same.
import { useParams } from "@tanstack/react-router";
import { memo, useState, type ReactNode } from "react";
import { useShallow } from "zustand/react/shallow";
import type { ConversationPage, FollowUp } from "../api/client";
import { useLetters, type Letter } from "../api/outbox";
import { Button } from "../controls/button";
import { Icon, type IconName } from "../controls/icon";
import { LetterNotice } from "../rooms/problem-letter";
import type { Steering } from "../turn/fold";
import type { LiveTurn } from "../turn/live";
import { useSpeech } from "../words/speech";
import { changeFollowUp } from "./follow-ups";
import { useStanding } from "./standing";
import { useAsked, withdraw } from "./stop";
import { wishFocus, wishText } from "./wishes";

const none: readonly Steering[] = [];

/** Drawn with every frame of a live turn; what is within, only when something waits or has come through. */
export function Queue({ page, live }: { page: ConversationPage | undefined; live: LiveTurn | null }) {
  const params = useParams({ strict: false });
  // A conversation that the service does not know yet has messages that wait, too.
  const id = page?.conversation_id ?? params.conversation ?? "";
  const standing = useStanding(id, page, live);
  return <Inner id={id} page={page} turn={standing.turn} shown={live?.view.turnID ?? null} inputs={live?.view.steering ?? none} />;
}

interface InnerProps {
  id: string;
  page: ConversationPage | undefined;
  turn: string | null;
  /** The turn that the inputs belong to. */
  shown: string | null;
  inputs: readonly Steering[];
}

const Inner = memo(function Inner({ id, page, turn, shown, inputs }: InnerProps) {
  const { say } = useSpeech();
  const letters = useLetters(useShallow(({ list }) => list.filter((one) => one.conversationID === id && (one.turn !== undefined || one.busy === "queue"))));
  const steering = inputs.filter((one) => one.state !== "applied");
  const queued = (page?.follow_ups ?? []).filter((item) => item.state === "queued");
  const held = (page?.follow_ups ?? []).filter((item) => item.state === "held");
  // What the events or the conversation tell of is not told once more.
  const known = new Set([...inputs.map((one) => one.clientID), ...(page?.follow_ups ?? []).map((item) => item.follow_up_id)]);
  const onTheWay = letters.filter((letter) => !known.has(letter.key) && !known.has(letter.parked ?? ""));
  const rows = steering.length + queued.length + held.length + onTheWay.length;
  if (rows === 0) return null;
  return (
    <section aria-label={say("composer.waiting")} {...(rows > 3 ? { tabIndex: 0 } : {})} className="mb-2 max-h-[30dvh] overflow-y-auto rounded-md">
      <p role="status" className={queued.length + held.length > 1 ? "bg-sunken px-3 pt-2 text-xs text-soft" : "sr-only"}>
        {[queued.length > 0 && say("composer.waiting.items", { count: queued.length }), held.length > 0 && say("composer.waiting.held.items", { count: held.length })].filter(Boolean).join(" · ")}
      </p>
      <ol className="flex flex-col divide-y divide-line bg-sunken px-3">
        {steering.map((one) => (
          <SteeringItem key={one.id} turn={shown} steering={one} open={turn !== null} />
        ))}
        {onTheWay.map((letter) => (
          <LetterItem key={letter.key} letter={letter} />
        ))}
        {queued.map((item, at) => (
          <FollowUpItem key={item.follow_up_id} id={id} live={turn !== null} item={item} says={say(at > 0 ? "composer.waiting.after" : turn === null ? "composer.waiting.starting" : "composer.waiting.next", { count: at })} />
        ))}
        {held.map((item) => (
          <FollowUpItem key={item.follow_up_id} id={id} live={turn !== null} item={item} says={say("composer.waiting.held.why")} />
        ))}
      </ol>
    </section>
  );
});

function Row({ icon, state, text, mirrored = false, children }: { icon: IconName; state: string; text: string; mirrored?: boolean; children?: ReactNode }) {
  return (
    <li className="flex items-start gap-2.5 py-2 text-sm">
      <span className="mt-0.5 text-faint">
        <Icon name={icon} size={16} mirrored={mirrored} />
      </span>
      <div className="min-w-0 grow">
        <p dir="auto" className="line-clamp-2 wrap-anywhere">
          {text}
        </p>
        <p className="text-xs text-soft">{state}</p>
        {children}
      </div>
    </li>
  );
}

function FollowUpItem({ id, item, says, live }: { id: string; item: FollowUp; says: string; live: boolean }) {
  const { say } = useSpeech();
  const [asking, setAsking] = useState(false);
  const held = item.state === "held";
  const change = async (state: "queued" | "cancelled") => {
    setAsking(true);
    const done = await changeFollowUp(id, item, state, say);
    setAsking(false);
    if (!done) return;
    if (state === "cancelled") wishText(id, item.content);
    else wishFocus(); // the button that was pressed goes
  };
  return (
    <Row icon={held ? "clock" : "queue"} state={`${say(held ? "composer.waiting.held" : "composer.waiting.queued")} · ${says}`} text={item.content} mirrored={!held}>
      <div className="-ms-3 flex flex-wrap">
        {held && (
          <Button look="quiet" icon={live ? "queue" : "arrowUp"} disabled={asking} onClick={() => void change("queued")}>
            {say(live ? "composer.waiting.queue" : "composer.waiting.send")}
          </Button>
        )}
        <Button look="quiet" icon="undo" disabled={asking} onClick={() => void change("cancelled")}>
          {say("composer.letter.back")}
        </Button>
      </div>
    </Row>
  );
}

/** Of a message for the queue or a steering input that the service does not have yet. */
function LetterItem({ letter }: { letter: Letter }) {
  const { say } = useSpeech();
  const steers = letter.turn !== undefined;
  return (
    <Row icon={steers ? "steer" : "queue"} state={letter.trouble === null ? say(steers ? "composer.steering.sending" : "composer.letter.sending") : ""} text={letter.text} mirrored>
      <LetterNotice letterKey={letter.key} />
    </Row>
  );
}

function SteeringItem({ turn, steering, open }: { turn: string | null; steering: Steering; open: boolean }) {
  const { say } = useSpeech();
  const asked = useAsked(({ byID }) => byID[steering.id]?.state);
  const takeBack = (from: string) => {
    withdraw(from, steering.id);
    // The button goes. Not where the field would bring a keyboard up.
    if (matchMedia("(hover: hover)").matches) wishFocus();
  };
  if (steering.state === "returned") {
    return <Row icon="undo" text={steering.text} state={say(steering.reason === "withdrawn" ? "composer.steering.withdrawn" : "composer.steering.returned")} />;
  }
  return (
    <Row icon="steer" text={steering.text} state={say("composer.steering.accepted")} mirrored>
      {open && turn !== null && (
        <Button look="quiet" icon="undo" disabled={asked !== undefined} onClick={() => takeBack(turn)} className="-ms-3">
          {say(asked === undefined ? "composer.steering.withdraw" : "composer.steering.withdrawing")}
        </Button>
      )}
    </Row>
  );
}
