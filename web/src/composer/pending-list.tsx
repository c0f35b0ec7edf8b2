// The list above the composer: follow-ups, and steering inputs with their state. Except for the outbox messages of this
// device, the list comes from the service, so every device shows the same.
import { useParams } from "@tanstack/react-router";
import { memo, useState, type ReactNode } from "react";
import { useShallow } from "zustand/react/shallow";
import type { ConversationPage, FollowUp } from "../api/client";
import { useOutbox, type OutboxMessage } from "../api/outbox";
import { Button } from "../controls/button";
import { Icon, type IconName } from "../controls/icon";
import { OutboxMessageNotice } from "./outbox-message-notice";
import type { Steering } from "../turn/fold";
import type { LiveTurn } from "../turn/live";
import { useLocalization } from "../messages/localization";
import { changeFollowUp } from "./follow-ups";
import { useComposerState } from "./composer-state";
import { useSteeringRequests, withdrawSteering } from "./stop";
import { focusComposer, insertText } from "./composer-requests";

const none: readonly Steering[] = [];

/** Renders on every frame of a live turn; Inner renders only when one of its props has changed. */
export function PendingList({ page, live }: { page: ConversationPage | undefined; live: LiveTurn | null }) {
  const params = useParams({ strict: false });
  // A conversation that is not on the service yet may have waiting messages too.
  const id = page?.conversation_id ?? params.conversation ?? "";
  const state = useComposerState(id, page, live);
  return (
    <Inner
      id={id}
      page={page}
      turn={state.turn}
      shown={live?.view.turnID ?? null}
      inputs={live?.view.steering ?? none}
    />
  );
}

interface InnerProps {
  id: string;
  page: ConversationPage | undefined;
  turn: string | null;
  /** The turn of the steering inputs. */
  shown: string | null;
  inputs: readonly Steering[];
}

const Inner = memo(function Inner({ id, page, turn, shown, inputs }: InnerProps) {
  const { t } = useLocalization();
  const messages = useOutbox(
    useShallow(({ list }) =>
      list.filter((one) => one.conversationID === id && (one.targetTurn !== undefined || one.ifBusy === "queue")),
    ),
  );
  const steering = inputs.filter((one) => one.state !== "applied");
  const queued = (page?.follow_ups ?? []).filter((item) => item.state === "queued");
  const held = (page?.follow_ups ?? []).filter((item) => item.state === "held");
  // Outbox messages that the events or the conversation already contain are not listed twice.
  const known = new Set([
    ...inputs.map((one) => one.clientID),
    ...(page?.follow_ups ?? []).map((item) => item.follow_up_id),
  ]);
  const unaccepted = messages.filter((message) => !known.has(message.key) && !known.has(message.followUpID ?? ""));
  const rows = steering.length + queued.length + held.length + unaccepted.length;
  if (rows === 0) return null;
  return (
    <section
      aria-label={t("composer.waiting")}
      {...(rows > 3 ? { tabIndex: 0 } : {})}
      className="mb-2 max-h-[30dvh] overflow-y-auto rounded-md"
    >
      <p
        role="status"
        className={queued.length + held.length > 1 ? "bg-sunken px-3 pt-2 text-xs text-soft" : "sr-only"}
      >
        {[
          queued.length > 0 && t("composer.waiting.items", { count: queued.length }),
          held.length > 0 && t("composer.waiting.held.items", { count: held.length }),
        ]
          .filter(Boolean)
          .join(" · ")}
      </p>
      <ol className="flex flex-col divide-y divide-line bg-sunken px-3">
        {steering.map((one) => (
          <SteeringItem key={one.id} turn={shown} steering={one} open={turn !== null} />
        ))}
        {unaccepted.map((message) => (
          <OutboxItem key={message.key} message={message} />
        ))}
        {queued.map((item, at) => (
          <FollowUpItem
            key={item.follow_up_id}
            id={id}
            live={turn !== null}
            item={item}
            note={t(
              at > 0 ? "composer.waiting.after" : turn === null ? "composer.waiting.starting" : "composer.waiting.next",
              { count: at },
            )}
          />
        ))}
        {held.map((item) => (
          <FollowUpItem
            key={item.follow_up_id}
            id={id}
            live={turn !== null}
            item={item}
            note={t("composer.waiting.held.hint")}
          />
        ))}
      </ol>
    </section>
  );
});

function Row({
  icon,
  state,
  text,
  mirrored = false,
  children,
}: {
  icon: IconName;
  state: string;
  text: string;
  mirrored?: boolean;
  children?: ReactNode;
}) {
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

function FollowUpItem({ id, item, note, live }: { id: string; item: FollowUp; note: string; live: boolean }) {
  const { t } = useLocalization();
  const [changing, setChanging] = useState(false);
  const held = item.state === "held";
  const change = async (state: "queued" | "cancelled") => {
    setChanging(true);
    const done = await changeFollowUp(id, item, state, t);
    setChanging(false);
    if (!done) return;
    if (state === "cancelled") insertText(id, item.content);
    else focusComposer(); // the pressed button disappears
  };
  return (
    <Row
      icon={held ? "clock" : "queue"}
      state={note}
      text={item.content}
      mirrored={!held}
    >
      <div className="-ms-3 flex flex-wrap">
        {held && (
          <Button
            look="quiet"
            icon={live ? "queue" : "arrowUp"}
            disabled={changing}
            onClick={() => void change("queued")}
          >
            {t(live ? "composer.waiting.queue" : "composer.waiting.send")}
          </Button>
        )}
        <Button look="quiet" icon="undo" disabled={changing} onClick={() => void change("cancelled")}>
          {t("composer.outbox.edit")}
        </Button>
      </div>
    </Row>
  );
}

/** A queued message or a steering input that the service has not accepted yet. */
function OutboxItem({ message }: { message: OutboxMessage }) {
  const { t } = useLocalization();
  const steers = message.targetTurn !== undefined;
  return (
    <Row
      icon={steers ? "steer" : "queue"}
      state={message.failure === null ? t(steers ? "composer.steering.sending" : "composer.outbox.sending") : ""}
      text={message.text}
      mirrored
    >
      <OutboxMessageNotice messageKey={message.key} />
    </Row>
  );
}

function SteeringItem({ turn, steering, open }: { turn: string | null; steering: Steering; open: boolean }) {
  const { t } = useLocalization();
  const requested = useSteeringRequests(({ byID }) => byID[steering.id]?.state);
  const withdraw = (from: string) => {
    withdrawSteering(from, steering.id);
    // The pressed button is disabled, then disappears. On touch screens, focus would open the on-screen keyboard.
    if (matchMedia("(hover: hover)").matches) focusComposer();
  };
  if (steering.state === "returned") {
    return (
      <Row
        icon="undo"
        text={steering.text}
        state={t(steering.reason === "withdrawn" ? "composer.steering.withdrawn" : "composer.steering.returned")}
      />
    );
  }
  return (
    <Row icon="steer" text={steering.text} state={t("composer.steering.accepted")} mirrored>
      {open && turn !== null && (
        <Button
          look="quiet"
          icon="undo"
          disabled={requested !== undefined}
          onClick={() => withdraw(turn)}
          className="-ms-3"
        >
          {t(requested === undefined ? "composer.steering.withdraw" : "composer.steering.withdrawing")}
        </Button>
      )}
    </Row>
  );
}
