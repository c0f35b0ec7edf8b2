// What can be done with a message: small, quiet, in reach when one points at the message or comes to it by keyboard.
import { useRef, type ReactNode } from "react";
import { Refusal } from "../api/client";
import { IconButton } from "../controls/button";
import { toast } from "../controls/toast";
import type { Message } from "../generated/events";
import { useReachable } from "../parts/near";
import { useSpeech } from "../words/speech";
import { showSibling } from "./siblings";
import { useRoom } from "./room";

/** always: shown without being pointed at. Far from what is looked at there is only their place, until the Tab key is used. */
export function Actions({ always, end, children }: { always: boolean; end?: boolean; children: () => ReactNode }) {
  const { say } = useSpeech();
  const place = useRef<HTMLDivElement>(null);
  const near = useReachable(place);
  const hidden = always ? "" : "opacity-0 group-focus-within/row:opacity-100 group-hover/row:opacity-100 pointer-coarse:opacity-100";
  return (
    <div ref={place} role="group" aria-label={say("transcript.actions")} className={`mt-1 flex min-h-8 items-center gap-0.5 text-xs text-faint transition-opacity ${end ? "justify-end" : "-ms-1.5"} ${hidden}`}>
      {near && children()}
    </div>
  );
}

/** Moves between the versions of a message. */
export function Siblings({ message }: { message: Message }) {
  const { say, intl } = useSpeech();
  const { id, busy, scroll } = useRoom();
  const going = useRef(false); // not by disabling the buttons: that takes the focus away
  const { sibling_index: at, sibling_count: count, previous_sibling: before, next_sibling: after } = message;
  if (count < 2) return null;
  const show = async (sibling: Message["next_sibling"]) => {
    if (sibling === undefined || going.current) return;
    going.current = true;
    scroll.hold(message.parent_message_id ?? "first");
    try {
      await showSibling(id, sibling);
    } catch (refusal) {
      toast(say(refusal instanceof Refusal && refusal.code === "turn_in_progress" ? "transcript.version_busy" : "transcript.version_refused"), { kind: "problem" });
    } finally {
      going.current = false;
    }
  };
  return (
    <span role="group" aria-label={say("transcript.versions")} className="flex items-center">
      <IconButton size="small" icon="chevronLeft" mirrored label={say("transcript.version_before")} disabled={before === undefined || busy} onClick={() => void show(before)} />
      <span className="px-0.5 tabular-nums">
        <span aria-hidden="true">{`${intl.formatNumber(at + 1)}/${intl.formatNumber(count)}`}</span>
        <span className="sr-only">{say("transcript.version_of", { at: at + 1, count })}</span>
      </span>
      <IconButton size="small" icon="chevronRight" mirrored label={say("transcript.version_after")} disabled={after === undefined || busy} onClick={() => void show(after)} />
    </span>
  );
}
