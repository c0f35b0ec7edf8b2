// The page of a conversation: its transcript, the queued messages and the composer.
import { useParams } from "@tanstack/react-router";
import { useEffect, useRef } from "react";
import type { ConversationPage } from "../../api/client";
import { ArtifactPanel, useOpenedArtifact } from "../artifacts";
import { Composer, newChat, OutboxMessageNotice, PendingList, UnsentText } from "../composer";
import { Button } from "../../controls/button";
import { deferred } from "../../controls/deferred";
import { useLater } from "../../controls/later";
import { useOutbox } from "../../api/outbox";
import { isUnsent } from "../../api/provisional";
import { useOnline } from "../../controls/media";
import { useKnownConversation } from "../../api/known-conversation";
import { NewChatExamples } from "./empty";
import { useConversation, type ConversationState } from "./use-conversation";
import { useLive } from "../../turn/live";
import { useLocalization } from "../../messages/localization";
import { ConnectionBanner } from "./connection-banner";
import { ConversationLoading } from "./conversation-loading";

// The transcript with its Markdown is the larger part of the app, and a new chat does not need it.
const Transcript = deferred(() => import("./transcript").then((m) => m.Transcript), {
  Placeholder: () => <ConversationLoading />,
});
const NotFound = deferred(() => import("../../controls/not-found").then((m) => m.NotFound));

/**
 * The page of a new chat and of a conversation. A new chat becomes a conversation when its draft is first stored or a
 * message is sent. The page keeps its key then, so that the composer keeps its focus, its cursor and an open menu.
 */
export function ConversationRoute() {
  const id = useParams({ strict: false }).conversation ?? null;
  // The identifier of the open new chat. Kept until another page is opened, because endNewChat() comes before that.
  const opened = useRef<string | null>(null);
  opened.current = id === null ? (opened.current ?? newChat().id) : null;
  // The transcript is loaded while the messages are fetched, or while the first message is typed. Rendering reports a failure.
  const later = useLater();
  const needed = later || id !== null;
  useEffect(() => {
    if (needed) void Transcript.preload().catch(() => {});
  }, [needed]);
  useEffect(() => {
    if (later) void OutboxMessageNotice.preload().catch(() => {});
  }, [later]);
  const key = id ?? opened.current!;
  return <ConversationView key={key} id={key} isNew={id === null} />;
}

function ConversationView({ id, isNew }: { id: string; isNew: boolean }) {
  const conversation = useConversation(id, isNew);
  const [artifact, openArtifact] = useOpenedArtifact();
  const started = useRef(isNew); // here, so that nothing disappears while its data are loading
  if (conversation.refusal !== null && conversation.refusal.status === 404)
    return (
      <NotFound>
        <UnsentText conversation={id} />
      </NotFound>
    );
  const beside = artifact !== undefined;
  // Always the same elements, so that the composer stays as it is when the panel opens.
  return (
    <div className={beside ? "contents lg:flex lg:min-h-0 lg:grow" : "contents"}>
      <div className={beside ? "contents lg:flex lg:min-w-0 lg:grow lg:flex-col lg:short:overflow-y-auto" : "contents"}>
        {isNew || showsWelcome(conversation, started.current) ? (
          <NewChatExamples id={id} />
        ) : (
          <Content id={id} conversation={conversation} />
        )}
        <ConversationFooter
          id={isNew ? null : id}
          page={isNew ? undefined : conversation.page}
          turnID={conversation.turnID}
          deleted={conversation.deleted}
        />
      </div>
      {beside && !isNew && <ArtifactPanel conversation={id} opened={artifact} onOpen={openArtifact} />}
    </div>
  );
}

/** Until the first message is sent, a conversation looks like a new chat, also after its draft was stored. */
const showsWelcome = ({ page, rows, refusal }: ConversationState, started: boolean): boolean =>
  rows.length === 0 && (page === undefined ? started && refusal === null : isUnsent(page));

/** The messages, or why they are not shown. */
function Content({ id, conversation }: { id: string; conversation: ConversationState }) {
  const { t } = useLocalization();
  // While the device is offline, a failure to load needs no button: the conversation loads when the device is online.
  const offline = !useOnline() && conversation.rows.length === 0;
  // Once the title is known, the page header shows it as h1.
  const untitled = useKnownConversation(id) === undefined;
  const Heading = untitled ? "h1" : "h2";
  if (conversation.refusal !== null && !offline)
    return (
      <div role="alert" className="m-auto max-w-md px-6 text-center">
        <Heading className="font-medium">{t("transcript.not_loaded")}</Heading>
        <p className="mt-1 text-sm text-soft">
          {t(conversation.refusal.status === 0 ? "transcript.not_loaded.network" : "transcript.not_loaded.service")}
        </p>
        <Button className="mt-4" icon="retry" onClick={conversation.again}>
          {t("transcript.retry")}
        </Button>
      </div>
    );
  if (conversation.loading && conversation.rows.length === 0) return <ConversationLoading isHeading={untitled} />;
  return <Transcript id={id} conversation={conversation} />;
}

/**
 * The banner, the queue and the composer. Of the components in this file, only this one renders again with every update
 * of the live turn.
 */
function ConversationFooter({
  id,
  page,
  turnID,
  deleted,
}: {
  id: string | null;
  page: ConversationPage | undefined;
  turnID: string | null;
  deleted: boolean;
}) {
  const live = useLive(({ byID: turns }) => (turnID === null || deleted ? null : (turns[turnID] ?? null)));
  const later = useLater();
  const unaccepted = useOutbox(({ list }) => list.length > 0);
  const mayWait = later || live !== null || unaccepted || (page?.follow_ups.length ?? 0) > 0;
  return (
    <div className="relative mx-auto w-full max-w-(--width-prose) px-4 pb-[max(0.75rem,env(safe-area-inset-bottom))]">
      <ConnectionBanner live={live} />
      {mayWait && <PendingList page={deleted ? undefined : page} live={live} />}
      <Composer conversationID={id} page={page} live={live} deleted={deleted} />
    </div>
  );
}
