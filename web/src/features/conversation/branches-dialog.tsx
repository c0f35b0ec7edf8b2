// The dialog with the branches of a conversation as a tree: switches to one, renames one, and copies one to a new
// conversation.
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useEffect, useMemo, useRef, useState, type KeyboardEvent } from "react";
import { branchesQuery, copyBranch, copyProblemOf, type Branch } from "./branches";
import { Refusal, type Conversation } from "../../api/client";
import { conversationQuery } from "../../api/queries";
import { noticeSignOut } from "../../api/session-state";
import { Button } from "../../controls/button";
import { Dialog } from "../../controls/dialog";
import { Icon } from "../../controls/icon";
import { toast } from "../../controls/toast";
import { branchingMessages, type BranchingMessageKey } from "../../messages/branching";
import { useLocalization, useMessages } from "../../messages/localization";
import { showBranch } from "./siblings";
import { BranchRow, useNameOf } from "./branch-row";
import { rowsOfTree, stepOf, tabStop } from "./branch-tree";
import { useBranching } from "./branching";

/** The pages that are loaded without being asked for. More rows would be slow to draw. */
const maxLoadedAhead = 3;

const close = (): void => useBranching.setState({ conversation: null });

export function BranchesDialog() {
  const conversation = useBranching((branching) => branching.conversation);
  return conversation && <OpenDialog key={conversation.conversation_id} conversation={conversation} />;
}

interface Notice {
  text: BranchingMessageKey;
  problem: boolean;
}

function OpenDialog({ conversation }: { conversation: Conversation }) {
  const { t } = useLocalization();
  const branching = useMessages(branchingMessages);
  const id = conversation.conversation_id;
  const list = useLoadedAhead(id);
  const page = useQuery(conversationQuery(id)).data ?? conversation;
  const live = page.live_turn_id !== null;
  const nameOf = useNameOf();
  const navigate = useNavigate();
  const [notice, setNotice] = useState<Notice | null>(null);
  const [before] = useState(() => document.activeElement);
  // A menu item that opened the dialog no longer exists.
  const returnTo = () => (before?.isConnected === true ? null : document.getElementById("conversation-menu"));
  const pending = useRef(false); // in place of disabled controls, which would lose the focus
  /** Runs an action, unless one is running. problemOf returns the message for its error. */
  const run = async (action: () => Promise<void>, problemOf: (error: unknown) => BranchingMessageKey) => {
    if (pending.current) return;
    pending.current = true;
    setNotice(null);
    try {
      await action();
    } catch (error) {
      noticeSignOut(error);
      setNotice({ text: problemOf(error), problem: true });
    } finally {
      pending.current = false;
    }
  };
  const show = (branch: Branch) => {
    if (live && branch.branch_id !== page.active_branch_id) return; // the dialog says so
    void run(
      async () => {
        if (branch.branch_id !== page.active_branch_id) {
          await showBranch(id, branch.branch_id);
          toast(branching("branching.shown", { name: nameOf(branch) }), { stays: 2_500 });
        }
        close();
        await navigate({ to: "/c/$conversation", params: { conversation: id } });
      },
      (error) =>
        error instanceof Refusal && error.code === "turn_in_progress" ? "branching.busy" : "branching.not_shown",
    );
  };
  const copy = ({ head_message_id: head }: Branch) => {
    if (head === null) return;
    void run(async () => {
      const { conversation_id } = await copyBranch(id, head);
      close();
      await navigate({ to: "/c/$conversation", params: { conversation: conversation_id } });
      toast(branching("branching.copied"), { stays: 4_000 });
    }, copyProblemOf);
  };
  return (
    <Dialog
      title={branching("branching.title")}
      description={branching("branching.hint")}
      onClose={close}
      returnTo={returnTo}
      wide
    >
      {list.data === undefined ? (
        <NotLoaded failed={list.isError} onRetry={() => void list.refetch()} />
      ) : (
        <Tree
          conversation={id}
          branches={list.branches}
          active={page.active_branch_id}
          live={live}
          settled={!list.loadsAhead}
          onShow={show}
          onCopy={copy}
          onRenamed={() => setNotice({ text: "branching.renamed", problem: false })}
        />
      )}
      {list.data !== undefined && list.hasNextPage && !list.loadsAhead && (
        <Button
          className="w-fit shrink-0 aria-disabled:text-faint"
          aria-disabled={list.isFetchingNextPage}
          onClick={() => !list.isFetchingNextPage && void list.fetchNextPage()}
        >
          {t("pages.archive.more")}
        </Button>
      )}
      {/* They exist before their texts, because screen readers announce only changes of a region that exists. */}
      <p role="status" className={live ? "text-sm text-soft" : "sr-only"}>
        {live ? branching("branching.busy") : notice?.problem === false && branching(notice.text)}
      </p>
      <div role="alert" className={notice?.problem === true ? "" : "sr-only"}>
        {notice?.problem === true && (
          <p className="flex items-start gap-2 rounded-md bg-danger-wash px-3 py-2 text-sm text-danger">
            <Icon name="warning" size={16} />
            {branching(notice.text)}
          </p>
        )}
      </div>
    </Dialog>
  );
}

/** The branches of a conversation. Loads the first pages one after the other, and further ones on request. */
function useLoadedAhead(conversation: string) {
  const list = useInfiniteQuery(branchesQuery(conversation));
  const { data, hasNextPage, isFetching, isError, fetchNextPage } = list;
  const count = data?.pages.length ?? 0;
  const loadsAhead = hasNextPage && !isError && count < maxLoadedAhead;
  useEffect(() => {
    if (loadsAhead && !isFetching) void fetchNextPage();
  }, [loadsAhead, isFetching, count, fetchNextPage]);
  const branches = useMemo(() => data?.pages.flatMap((page) => page.data) ?? [], [data]);
  return { ...list, branches, loadsAhead };
}

function NotLoaded({ failed, onRetry }: { failed: boolean; onRetry: () => void }) {
  const { t } = useLocalization();
  const branching = useMessages(branchingMessages);
  return failed ? (
    <Button icon="retry" className="w-fit" onClick={onRetry}>
      {branching("branching.not_loaded")}
    </Button>
  ) : (
    <p role="status" className="text-sm text-soft">
      {t("pages.list.loading")}
    </p>
  );
}

interface TreeProps {
  conversation: string;
  branches: readonly Branch[];
  active: string;
  /** Whether a turn is live on the active branch: then the conversation cannot switch to another one. */
  live: boolean;
  /** Whether the pages that are loaded ahead are there. */
  settled: boolean;
  onShow: (branch: Branch) => void;
  onCopy: (branch: Branch) => void;
  onRenamed: () => void;
}

/** Tab stops at one row only, and then at its menu; arrow keys lead to the other rows. */
function Tree({ conversation, branches, active, live, settled, onShow, onCopy, onRenamed }: TreeProps) {
  const { direction } = useLocalization();
  const branching = useMessages(branchingMessages);
  const [collapsed, setCollapsed] = useState<ReadonlySet<string>>(new Set());
  const [focused, setFocused] = useState<string | null>(null);
  const [editing, setEditing] = useState<string | null>(null);
  const tree = useRef<HTMLDivElement>(null);
  const rows = useMemo(() => rowsOfTree(branches, collapsed), [branches, collapsed]);
  const stop = tabStop(rows, focused, active);
  const indented = rows.some(({ expanded }) => expanded !== null);
  const focusRow = (id: string | null) => tree.current?.querySelector<HTMLElement>(`[data-branch="${id}"]`)?.focus();
  useEffect(() => {
    // The dialog has the focus until the rows are loaded, unless the user has moved it.
    if (settled && document.activeElement?.contains(tree.current) === true) focusRow(tabStop(rows, null, active));
    // Only when it has loaded, not at changes of the list.
  }, [settled]);
  /** The row that gets the focus once its editor is removed: until then it cannot have it. */
  const edited = useRef<string | null>(null);
  useEffect(() => {
    if (editing !== null || edited.current === null) return;
    focusRow(edited.current);
    edited.current = null;
  }, [editing]);
  const expand = (id: string, expanded: boolean) => {
    const next = new Set(collapsed);
    if (expanded) next.delete(id);
    else next.add(id);
    setCollapsed(next);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    // Not keys of the controls in a row, or of its menu, which is a child of the row for React.
    const id = event.target instanceof HTMLElement ? event.target.dataset["branch"] : undefined;
    const row = rows.find(({ branch }) => branch.branch_id === id);
    if (row === undefined || id === undefined || event.ctrlKey || event.altKey || event.metaKey) return;
    const step = stepOf(rows, id, event.key, direction);
    if (step !== null && "focus" in step) focusRow(step.focus);
    else if (step !== null) expand(id, step.expand);
    else if (event.key === "Enter" || event.key === " ") onShow(row.branch);
    else if (event.key === "F2") setEditing(id);
    else return;
    event.preventDefault();
  };
  return (
    <div ref={tree} role="tree" aria-label={branching("branching.title")} onKeyDown={onKeyDown} className="-mx-2">
      {rows.map((row) => {
        const { branch } = row;
        const id = branch.branch_id;
        return (
          <BranchRow
            key={id}
            conversation={conversation}
            row={row}
            active={id === active}
            live={live}
            stop={id === stop}
            indented={indented}
            editing={id === editing}
            onFocus={() => setFocused(id)}
            onExpand={(expanded) => expand(id, expanded)}
            onShow={() => onShow(branch)}
            onCopy={() => onCopy(branch)}
            onEdit={() => setEditing(id)}
            onEdited={(renamed) => {
              edited.current = id;
              setEditing(null);
              if (renamed) onRenamed();
            }}
          />
        );
      })}
    </div>
  );
}
