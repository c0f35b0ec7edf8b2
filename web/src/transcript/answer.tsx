// An answer: while it is written from the events of its turn, afterwards from its message. Both have the same parts by the
// same names, so nothing moves when one takes the place of the other.
import { memo, useRef } from "react";
import { sendMessage } from "../api/outbox";
import { IconButton } from "../controls/button";
import { Menu, MenuItem } from "../controls/menu";
import { toast } from "../controls/toast";
import type { Message, TurnRouting } from "../generated/events";
import { CopyButton } from "../parts/copy-button";
import { copyText } from "../parts/keep";
import { Part } from "../parts/part";
import { plainOf } from "../parts/plain";
import type { PartView } from "../turn/fold";
import { useLive } from "../turn/live";
import { useSpeech } from "../words/speech";
import { Actions, Siblings } from "./actions";
import { Activity } from "./activity";
import { Ending } from "./ending";
import { markdownOf } from "./markdown-of";
import { useRoom } from "./room";
import { isFinal } from "./rows";
import { Routing } from "./routing";

interface AnswerProps {
  message: Message | null;
  turnID: string | null;
  /** The last row of the conversation. */
  last: boolean;
}

export const Answer = memo(function Answer({ message, turnID, last }: AnswerProps) {
  const final = isFinal(message) ? message : null;
  const live = useLive(({ turns }) => (final !== null || turnID === null ? undefined : turns[turnID]));
  const routing = useRef<TurnRouting | null>(null);
  if (live?.view.routing) routing.current = live.view.routing;
  const parts: readonly Partial<PartView>[] = final?.parts ?? live?.view.parts ?? message?.parts ?? [];
  const finished = live?.view.finished ?? null;
  const ended = final !== null || finished !== null;
  return (
    <>
      {routing.current !== null && <Routing routing={routing.current} message={final} />}
      {parts.map((part) => (
        <Part key={part.part_id} part={part as PartView} />
      ))}
      {!ended && <Activity view={live?.view ?? null} />}
      {ended && <Ending message={final} turnID={turnID} finished={finished} last={last} />}
      {final !== null && <AnswerActions message={final} last={last} />}
    </>
  );
});

function AnswerActions({ message, last }: { message: Message; last: boolean }) {
  const { say } = useSpeech();
  const { id, busy } = useRoom();
  const again = (profile?: "balanced" | "deep_reasoning" | "coding") =>
    sendMessage({ conversationID: id, text: "", branch: { message_id: message.message_id, mode: "regenerate" }, busy: "reject", ...(profile === undefined ? {} : { profile }) });
  const copyPlain = async () => {
    const done = await copyText(plainOf(markdownOf(message.parts)));
    toast(say(done ? "transcript.copied" : "transcript.copy_refused"), done ? { stays: 2_500 } : { kind: "problem" });
  };
  return (
    <Actions always={last || message.sibling_count > 1}>
      {() => (
        <>
          <CopyButton label={say("transcript.copy_markdown")} text={() => markdownOf(message.parts)} />
          {!busy && <IconButton size="small" icon="retry" label={say("transcript.again")} onClick={() => again()} />}
          <Menu trigger={<IconButton size="small" icon="dots" label={say("transcript.menu")} />}>
            <MenuItem icon="copy" onSelect={() => void copyPlain()}>
              {say("transcript.copy_plain")}
            </MenuItem>
            {!busy &&
              (["balanced", "deep_reasoning", "coding"] as const).map((profile) => (
                <MenuItem key={profile} icon="retry" onSelect={() => again(profile)}>
                  {say("transcript.again_with", { profile: say(`transcript.profile.${profile}`) })}
                </MenuItem>
              ))}
          </Menu>
          <Siblings message={message} />
        </>
      )}
    </Actions>
  );
}
