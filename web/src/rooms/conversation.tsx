// The room of one conversation: what was said, what is being said, and where one writes.
import { lazy, Suspense } from "react";
import type { ConversationPage } from "../api/client";
import { Composer } from "../composer/composer";
import { Queue } from "../composer/queue";
import { Button } from "../controls/button";
import { Empty } from "../transcript/empty";
import { Transcript } from "../transcript/transcript";
import { useConversation } from "../transcript/use-conversation";
import { useLive } from "../turn/live";
import { useSpeech } from "../words/speech";
import { Banner } from "./banner";

const NotFound = lazy(() => import("./not-found").then((m) => ({ default: m.NotFound })));

/** id null: a new chat, which becomes a conversation with its first message. */
export function ConversationRoom({ id }: { id: string | null }) {
  return id === null ? <NewChat /> : <Known id={id} />;
}

function NewChat() {
  return (
    <>
      <Empty />
      <Foot id={null} page={undefined} turnID={null} />
    </>
  );
}

function Known({ id }: { id: string }) {
  const { say } = useSpeech();
  const room = useConversation(id);
  const Heading = room.page === undefined ? "h1" : "h2"; // the head has the title, once there is one
  if (room.refusal !== null && room.refusal.status === 404) {
    return (
      <Suspense>
        <NotFound />
      </Suspense>
    );
  }
  return (
    <>
      {room.refusal !== null ? (
        <div role="alert" className="m-auto max-w-md px-6 text-center">
          <Heading className="font-medium">{say("transcript.not_loaded")}</Heading>
          <p className="mt-1 text-sm text-soft">{say(room.refusal.status === 0 ? "transcript.not_loaded.network" : "transcript.not_loaded.service")}</p>
          <Button className="mt-4" icon="retry" onClick={room.again}>
            {say("transcript.retry")}
          </Button>
        </div>
      ) : room.loading && room.rows.length === 0 ? (
        <p className="m-auto animate-late text-sm text-faint">{say("transcript.loading")}</p>
      ) : (
        <Transcript id={id} room={room} />
      )}
      <Foot id={id} page={room.page} turnID={room.turnID} />
    </>
  );
}

/** Where one writes. It alone is drawn with every frame of a live turn, and only what the turn concerns in it. */
function Foot({ id, page, turnID }: { id: string | null; page: ConversationPage | undefined; turnID: string | null }) {
  const live = useLive(({ turns }) => (turnID === null ? null : (turns[turnID] ?? null)));
  return (
    <div className="mx-auto w-full max-w-(--width-prose) px-4 pb-[max(0.75rem,env(safe-area-inset-bottom))]">
      <Banner live={live} />
      <Queue page={page} live={live} />
      <Composer conversationID={id} page={page} live={live} />
    </div>
  );
}
