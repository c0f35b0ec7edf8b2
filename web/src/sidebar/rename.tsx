// Giving a conversation another title: in its row or in the head of its room. Shown at once, taken back when refused.
import { useRef } from "react";
import { create } from "zustand";
import { notice } from "../api/access";
import { api, body, type Conversation, Refusal } from "../api/client";
import { changed, keep, titlesOnTheWay } from "../api/queries";
import { toast } from "../controls/toast";
import { useSpeech, type Speech } from "../words/speech";

/** Which title is being edited, and where its editor stands. */
export const useEditing = create<{ id: string | null; place: "row" | "head" }>(() => ({ id: null, place: "row" }));

export const edit = (id: string | null, place: "row" | "head"): void => useEditing.setState({ id, place });

const longest = 200;

function put(id: string, title: string, version: number): Promise<Conversation> {
  return body(api.PUT("/conversations/{conversation_id}/title", { params: { path: { conversation_id: id }, header: { "If-Match": `"v${version}"` } }, body: { title } })) as Promise<Conversation>;
}

/** Stores a title. One that somebody else gave meanwhile stands, and the user is asked; what the service found by itself gives way. */
export async function rename(before: Conversation, title: string, say: Speech["say"]): Promise<void> {
  const id = before.conversation_id;
  titlesOnTheWay.set(id, title);
  keep({ ...before, title, title_source: "user" });
  try {
    const after = await put(id, title, before.version);
    titlesOnTheWay.delete(id);
    keep(after);
  } catch (refusal) {
    titlesOnTheWay.delete(id);
    const current = refusal instanceof Refusal && refusal.code === "stale_version" ? (refusal.problem?.current as Conversation | null) : null;
    if (current && (current.title_source === "auto" || current.title === before.title)) return rename(current, title, say);
    notice(refusal);
    keep(current ?? before);
    if (current) toast(say("rooms.rename.elsewhere", { title: current.title }), { kind: "problem", action: { label: say("rooms.rename.mine"), run: () => void rename(current, title, say) } });
    else toast(say("rooms.rename.failed"), { kind: "problem", action: { label: say("rooms.again"), run: () => void rename(before, title, say) } });
    return;
  }
  void changed("conversations");
  void changed("conversation", id);
}

/** The editor of a title. Enter and leaving it store, Esc does not. */
export function TitleEditor({ conversation, className = "", onDone }: { conversation: Conversation; className?: string; onDone: (byKey: boolean) => void }) {
  const { say } = useSpeech();
  const done = useRef(false);
  const end = (title: string | null, byKey: boolean) => {
    if (done.current) return; // the editor goes, and loses the focus by that
    done.current = true;
    edit(null, "row");
    onDone(byKey);
    const wanted = title?.trim() ?? "";
    if (wanted !== "" && wanted !== conversation.title) void rename(conversation, wanted, say);
  };
  return (
    <input
      autoFocus
      dir="auto"
      aria-label={say("rooms.rename.label")}
      maxLength={longest}
      defaultValue={conversation.title}
      onFocus={(event) => event.target.select()}
      onBlur={(event) => end(event.target.value, false)}
      onKeyDown={(event) => {
        event.stopPropagation();
        if (event.nativeEvent.isComposing || event.keyCode === 229) return;
        if (event.key === "Enter") end(event.currentTarget.value, true);
        if (event.key === "Escape") end(null, true);
      }}
      className={`min-w-0 grow rounded-md border border-edge bg-raised px-2 text-base md:text-sm ${className}`}
    />
  );
}
