// The list above the composer: follow-ups, and steering inputs with their state. Except for the outbox messages of this
// device, the list comes from the service, so every device shows the same.
import { useParams } from "@tanstack/react-router";
import { memo, useState } from "react";
import { useShallow } from "zustand/react/shallow";
import type { ConversationPage, FollowUp } from "../../api/client";
import { useOutbox, type OutboxMessage } from "../../api/outbox";
import { maxSteeringInput } from "../../generated/limits";
import { Button } from "../../controls/button";
import { deferred } from "../../controls/deferred";
import { useSendModes } from "../../keys/send-keys";
import { OutboxMessageNotice } from "./outbox-message-notice";
import { runsTools, type Steering } from "../../turn/fold";
import type { LiveTurn } from "../../turn/live";
import { useMessages } from "../../messages/localization";
import { changeFollowUp, discardFollowUp, moveFollowUp, sendHeld, steerWith, useFollowUps } from "./follow-ups";
import { useComposerState } from "./composer-state";
import { decideSteering, useSteeringRequests } from "./steering-requests";
import { focusComposer } from "./composer-requests";
import { PendingRow, type Reordering, type RowAction } from "./pending-row";
import { lengthOf } from "./text-limits";
import { writingMessages, type WritingMessageKey } from "../../messages/writing";
import type { Translate } from "../../messages/catalog";

const PendingEditor = deferred(() => import("./pending-editor").then((m) => m.PendingEditor));

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
      steerable={state.acceptsSteering && !state.stopping}
      shown={live?.view.turnID ?? null}
      inputs={live?.view.steering ?? none}
      runsTools={live !== null && runsTools(live.view)}
    />
  );
}

interface InnerProps {
  id: string;
  page: ConversationPage | undefined;
  turn: string | null;
  /** Whether the live turn accepts steering inputs. */
  steerable: boolean;
  /** The turn of the steering inputs. */
  shown: string | null;
  inputs: readonly Steering[];
  /** Whether the turn waits for its tools. */
  runsTools: boolean;
}

/** The number of rows that are shown without scrolling. */
const visibleRows = 4;

const Inner = memo(function Inner({ id, page, turn, steerable, shown, inputs, runsTools }: InnerProps) {
  const t = useMessages(writingMessages);
  const messages = useOutbox(
    useShallow(({ list }) =>
      list.filter((one) => one.conversationID === id && (one.targetTurn !== undefined || one.ifBusy === "queue")),
    ),
  );
  const steering = inputs.filter((one) => one.state !== "applied");
  const replaced = new Set(messages.map((message) => message.replaces?.followUpID));
  const followUps = useFollowUps(page).filter((item) => !replaced.has(item.follow_up_id));
  const queued = followUps.filter((item) => item.state === "queued");
  const held = followUps.filter((item) => item.state === "held");
  const unaccepted = messages.filter((message) => !isListed(message, inputs, followUps));
  const rows = steering.length + queued.length + held.length + unaccepted.length;
  if (rows === 0) return null;
  return (
    <section aria-label={t("composer.pending")} className="mb-2 rounded-md bg-sunken">
      <div
        className={
          queued.length + held.length > 1 ? "flex min-h-9 items-center gap-2 ps-3 pe-1 text-xs text-soft" : "sr-only"
        }
      >
        <p role="status" className="grow">
          {[
            queued.length > 0 && t("composer.pending.items", { count: queued.length }),
            held.length > 0 && t("composer.pending.held.items", { count: held.length }),
          ]
            .filter(Boolean)
            .join(" · ")}
        </p>
        {held.length > 1 && <SendAll id={id} items={held} live={turn !== null} />}
      </div>
      {/* The height cuts the row after the last visible one, which shows that the list scrolls. */}
      <ol
        {...(rows > visibleRows ? { tabIndex: 0, "aria-label": t("composer.pending") } : {})}
        className="flex max-h-[min(10.375rem,40dvh)] short:max-h-none flex-col divide-y divide-line overflow-y-auto rounded-md pointer-coarse:max-h-[min(12.625rem,40dvh)] pointer-coarse:short:max-h-none not-short:has-[form]:max-h-[min(18rem,50dvh)]"
      >
        {steering.map((one) => (
          <SteeringItem key={one.id} turn={shown} steering={one} open={turn !== null} runsTools={runsTools} />
        ))}
        {unaccepted.map((message) => (
          <OutboxItem key={message.key} message={message} />
        ))}
        {queued.map((item, at) => (
          <FollowUpItem
            reordering={page && reorderingOf(page, queued, at, t)}
            key={item.follow_up_id}
            id={id}
            turn={turn}
            steerable={steerable}
            item={item}
            state={t(
              at > 0 ? "composer.pending.after" : turn === null ? "composer.pending.starting" : "composer.pending.next",
            )}
          />
        ))}
        {held.map((item, at) => (
          <FollowUpItem
            reordering={page && reorderingOf(page, held, at, t)}
            key={item.follow_up_id}
            id={id}
            turn={turn}
            steerable={steerable}
            item={item}
            state={t(at > 0 ? "composer.pending.held" : "composer.pending.held.hint")}
          />
        ))}
      </ol>
    </section>
  );
});

/**
 * Whether the events or the conversation already contain an outbox message. Until the service has returned the
 * identifier of a follow-up, it is recognized by its text; that lasts only as long as the first request.
 */
function isListed(message: OutboxMessage, inputs: readonly Steering[], followUps: readonly FollowUp[]): boolean {
  if (message.targetTurn !== undefined) return inputs.some((one) => one.clientID === message.key);
  const inFlight = message.state === "sending" && message.failure === null;
  return followUps.some(
    (item) => item.follow_up_id === message.followUpID || (inFlight && item.content === message.text),
  );
}

function SendAll({ id, items, live }: { id: string; items: readonly FollowUp[]; live: boolean }) {
  const t = useMessages(writingMessages);
  const [sending, setSending] = useState(false);
  const send = async () => {
    setSending(true);
    focusComposer(); // the pressed button is disabled, then disappears
    await sendHeld(id, items, t);
    setSending(false);
  };
  return (
    <Button look="quiet" icon={live ? "queue" : "arrowUp"} disabled={sending} onClick={() => void send()}>
      {t(live ? "composer.pending.queue_all" : "composer.pending.send_all")}
    </Button>
  );
}

interface FollowUpItemProps {
  id: string;
  turn: string | null;
  steerable: boolean;
  item: FollowUp;
  state: string;
  reordering: Reordering | undefined;
}

/**
 * Returns how an item moves among those with the same state; undefined: it cannot. A new order names every item of the
 * queue, so a queue that was not loaded whole cannot be reordered.
 */
function reorderingOf(
  page: ConversationPage,
  list: readonly FollowUp[],
  at: number,
  t: Translate<WritingMessageKey>,
): Reordering | undefined {
  if (list.length < 2 || page.more_follow_ups) return undefined;
  const id = list[at]!.follow_up_id;
  const moveTo = (target: FollowUp | undefined) =>
    target === undefined ? null : () => void moveFollowUp(page, id, target.follow_up_id, t);
  return {
    id,
    up: moveTo(list[at - 1]),
    down: moveTo(list[at + 1]),
    onDrop: (dragged) => {
      if (dragged !== id && list.some((one) => one.follow_up_id === dragged)) void moveFollowUp(page, dragged, id, t);
    },
  };
}

function FollowUpItem({ id, turn, steerable, item, state, reordering }: FollowUpItemProps) {
  const t = useMessages(writingMessages);
  const { steers } = useSendModes();
  const [changing, setChanging] = useState(false);
  const [editing, setEditing] = useState(false);
  const held = item.state === "held";
  const change = async (request: Promise<boolean>, then: () => void) => {
    setChanging(true);
    const done = await request;
    setChanging(false);
    if (done) then(); // the pressed button disappears
  };
  const release: RowAction = {
    icon: turn === null ? "arrowUp" : "queue",
    label: t(turn === null ? "composer.pending.send" : "composer.pending.queue"),
    run: () => void change(changeFollowUp(id, item, "queued", t), focusComposer),
  };
  const steer: RowAction = {
    icon: "steer",
    mirrored: true,
    label: t("composer.pending.steer"),
    run: () => {
      if (turn !== null) steerWith(id, turn, steers, item, t);
      focusComposer();
    },
  };
  const canSteer =
    turn !== null && steerable && item.attachments.length === 0 && lengthOf(item.content) <= maxSteeringInput;
  const actions: RowAction[] = [
    ...(held ? [release] : canSteer ? [steer] : []),
    {
      icon: "edit",
      label: t("composer.outbox.edit"),
      run: () => setEditing(true),
    },
    {
      icon: "trash",
      label: t("composer.outbox.discard"),
      run: () => void change(discardFollowUp(id, item, t), focusComposer),
    },
  ];
  if (editing) return <PendingEditor conversation={id} item={item} onClose={() => setEditing(false)} />;
  return (
    <PendingRow
      icon={held ? "clock" : "queue"}
      mirrored={!held}
      text={withFiles(item.content, item.attachments.length, t)}
      state={state}
      actions={actions}
      disabled={changing}
      reordering={reordering}
    />
  );
}

/** The text of a row, with the number of its files. */
const withFiles = (text: string, files: number, t: Translate<WritingMessageKey>): string =>
  files === 0 ? text : `${text} ${t("composer.pending.files", { count: files })}`.trim();

/** A queued message or a steering input that the service has not accepted yet. */
function OutboxItem({ message }: { message: OutboxMessage }) {
  const t = useMessages(writingMessages);
  const steers = message.targetTurn !== undefined;
  return (
    <PendingRow
      icon={steers ? "steer" : "queue"}
      mirrored
      text={withFiles(message.text, message.attachments?.length ?? 0, t)}
      state={message.failure === null ? t(steers ? "composer.steering.sending" : "composer.outbox.sending") : ""}
    >
      <OutboxMessageNotice messageKey={message.key} />
    </PendingRow>
  );
}

interface SteeringItemProps {
  turn: string | null;
  steering: Steering;
  open: boolean;
  runsTools: boolean;
}

function SteeringItem({ turn, steering, open, runsTools }: SteeringItemProps) {
  const t = useMessages(writingMessages);
  const requested = useSteeringRequests(({ byID }) => byID[steering.id]?.type);
  if (steering.state === "returned") {
    const state = t(steering.reason === "withdrawn" ? "composer.steering.withdrawn" : "composer.steering.returned");
    return <PendingRow icon="undo" mirrored text={steering.text} state={state} />;
  }
  const decide = (type: "apply_now" | "withdraw") => {
    if (turn !== null) decideSteering(turn, steering.id, type);
    focusComposer(); // the pressed button disappears
  };
  const actions: RowAction[] = [
    { icon: "interrupt", label: t("composer.steering.apply"), labelled: true, run: () => decide("apply_now") },
    { icon: "undo", label: t("composer.steering.withdraw"), run: () => decide("withdraw") },
  ];
  const state =
    requested === undefined
      ? runsTools
        ? "composer.steering.after_tools"
        : "composer.steering.accepted"
      : requested === "withdraw"
        ? "composer.steering.withdrawing"
        : "composer.steering.applying";
  return (
    <PendingRow
      icon="steer"
      mirrored
      text={steering.text}
      state={t(state)}
      actions={open && turn !== null && requested === undefined ? actions : []}
    />
  );
}
