// Archives, restores or moves several conversations with one action. It is displayed at once; one toast reports the
// outcome and undoes all of it. The conversations that the service refuses to change stay selected.
import { newPace, type Pace } from "../../api/batch";
import { Refusal, type Conversation } from "../../api/client";
import { refetchInAllTabs } from "../../api/queries";
import { noticeSignOut } from "../../api/session-state";
import { toast } from "../../controls/toast";
import type { MessageKey, Translate } from "../../messages/catalog";
import type { OrganizingMessageKey } from "../../messages/organizing";
import { putPlacement } from "./placement";
import { deselect, selectAgain, setLeaving, useSelecting, type ListName } from "./selecting";
import { countsOf, outcomeOf, type Outcome } from "./selection";

type T = Translate<OrganizingMessageKey>;

interface Action {
  /** Displays the change of a conversation at once, and stores it at a pace. */
  put: (conversation: Conversation, pace: Pace["run"]) => Promise<Conversation>;
  /** The list from which the action removes the conversations; null: none. */
  leaves: ListName | null;
  done: (count: number, t: T) => string;
  partly: MessageKey | OrganizingMessageKey;
  /** The message if a single conversation was refused. */
  failed: (conversation: Conversation, reason: unknown, t: T) => string;
  undo: () => Action;
}

const placing = (archived: boolean): Action => ({
  put: (conversation, pace) => putPlacement(conversation, { archived }, pace),
  leaves: archived ? "sidebar" : "archive",
  done: (count, t) => t(archived ? "pages.archive.done_many" : "pages.selection.restored", { count }),
  partly: archived ? "pages.selection.archived_partly" : "pages.selection.restored_partly",
  failed: ({ title }, _, t) => t("pages.organize.failed", { title: title || t("pages.untitled") }),
  undo: () => placing(!archived),
});

/** Moves each conversation into its project; null: out of its project. */
const moving = (projects: ReadonlyMap<string, string | null>, before: ReadonlyMap<string, string | null>): Action => {
  const projectOf = ({ conversation_id }: Conversation) => projects.get(conversation_id) ?? null;
  const out = [...projects.values()].every((project) => project === null);
  return {
    put: (conversation, pace) => putPlacement(conversation, { project_id: projectOf(conversation) }, pace),
    leaves: null,
    done: (count, t) => t(out ? "pages.move.removed" : "pages.move.done", { count }),
    partly: "pages.selection.moved_partly",
    failed: (_, reason, t) => {
      const refused = reason instanceof Refusal && (reason.status === 409 || reason.status === 404);
      return t(refused ? "pages.move.refused" : "pages.move.failed");
    },
    undo: () => moving(before, projects),
  };
};

export const archiveSelected = (conversations: readonly Conversation[], t: T) => act(conversations, placing(true), t);

export const restoreSelected = (conversations: readonly Conversation[], t: T) => act(conversations, placing(false), t);

/** Moves conversations into a project; null: out of their projects. Those that are there already are not changed. */
export function moveAll(conversations: readonly Conversation[], project: string | null, t: T): Promise<void> {
  const others = conversations.filter((one) => one.project_id !== project);
  const projects = new Map(others.map((one) => [one.conversation_id, project]));
  const before = new Map(others.map((one) => [one.conversation_id, one.project_id]));
  return act(others, moving(projects, before), t);
}

async function act(conversations: readonly Conversation[], action: Action, t: T, undoing = false): Promise<void> {
  const selected = deselect(conversations);
  setLeaving(conversations, action.leaves);
  // All are in the order of changes from now on: a later change of one that waits for the others comes after this one.
  const { run } = newPace();
  const outcome = outcomeOf(conversations, await Promise.allSettled(conversations.map((one) => action.put(one, run))));
  const { done, refused } = outcome;
  const unchanged = refused.map(({ item }) => item);
  refused.forEach(({ reason }) => noticeSignOut(reason));
  setLeaving(unchanged, null);
  const refetched = Promise.all(changed.map((key) => refetchInAllTabs(key)));
  if (selected) selectAgain(unchanged);
  if (!undoing || unchanged.length > 0)
    toast(messageOf(action, outcome, t), {
      kind: unchanged.length > 0 ? "problem" : "plain",
      ...(!undoing &&
        done.length > 0 && {
          action: { label: t("pages.delete.undo"), run: () => void act(done, action.undo(), t, true) },
        }),
    });
  await refetched;
  // Not those that "Undo" moves back in the meantime: they leave the other list.
  const { leaving } = useSelecting.getState();
  setLeaving(
    done.filter((one) => leaving.get(one.conversation_id) === action.leaves),
    null,
  );
}

/** What shows the conversations. */
const changed = ["conversations", "archive", "conversation", "projects", "project"];

function messageOf(action: Action, outcome: Outcome<Conversation, Conversation>, t: T): string {
  const { done, refused } = outcome;
  const [first] = refused;
  if (first === undefined) return action.done(done.length, t);
  if (done.length + refused.length === 1) return action.failed(first.item, first.reason, t);
  return t(action.partly, countsOf(outcome));
}
