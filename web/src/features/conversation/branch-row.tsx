// One branch in the tree of branches: its name and what is known of it, its menu, and the editor of its name.
import { useEffect, useEffectEvent, useId, useRef, useState, type MouseEvent } from "react";
import { cacheBranch, renameBranch, type Branch } from "./branches";
import { Refusal } from "../../api/client";
import { noticeSignOut } from "../../api/session-state";
import { maxTitle } from "../../generated/limits";
import { Button, IconButton } from "../../controls/button";
import { Icon } from "../../controls/icon";
import { Menu, MenuItem } from "../../controls/menu";
import { branchingMessages } from "../../messages/branching";
import { useLocalization, useMessages } from "../../messages/localization";
import { ageOf, beginningOf } from "./branch-name";
import type { TreeRow } from "./branch-tree";

/**
 * Returns a function that returns the name of a branch. One without a name is named after the first message that
 * distinguishes it, or as long as it has none after its time.
 */
export function useNameOf(): (branch: Branch) => string {
  const { intl } = useLocalization();
  const branching = useMessages(branchingMessages);
  return ({ name, preview, created_at }) =>
    name ||
    beginningOf(preview) ||
    branching("branching.unnamed", { when: intl.formatDate(created_at, { dateStyle: "medium", timeStyle: "short" }) });
}

interface RowProps {
  conversation: string;
  row: TreeRow;
  active: boolean;
  /** Whether a turn is live on the active branch. */
  live: boolean;
  /** Whether Tab stops at this row. */
  stop: boolean;
  /** Whether a row of the tree has a button that shows the rows below it. */
  indented: boolean;
  editing: boolean;
  onFocus: () => void;
  onExpand: (expanded: boolean) => void;
  onShow: () => void;
  onCopy: () => void;
  onEdit: () => void;
  /** Called when the editor closes, with whether it has stored another name. */
  onEdited: (renamed: boolean) => void;
}

export function BranchRow({ conversation, row, active, live, stop, indented, editing, ...on }: RowProps) {
  const { t } = useLocalization();
  const branching = useMessages(branchingMessages);
  const { branch, level, position, count, expanded } = row;
  const id = useId();
  const name = useNameOf()(branch);
  const press = (event: MouseEvent) => {
    // Not a press in the menu, which is a child of the row for React only, or on a control.
    const target = event.target as Element;
    if (event.currentTarget.contains(target) && target.closest("button, input") === null && !editing) on.onShow();
  };
  return (
    <div
      role="treeitem"
      data-branch={branch.branch_id}
      data-autofocus={stop ? "" : undefined}
      tabIndex={editing ? undefined : stop ? 0 : -1} // the editor takes the focus in place of the row
      aria-level={level}
      aria-posinset={position}
      aria-setsize={count}
      aria-expanded={expanded ?? undefined}
      aria-current={active ? "true" : undefined}
      aria-labelledby={editing ? undefined : `${id}-name ${id}-details`}
      aria-label={editing ? name : undefined}
      onFocus={on.onFocus}
      onClick={press}
      style={{ paddingInlineStart: `min(${level - 1} * 1rem, 20%)` }}
      className={`rounded-md -outline-offset-2 ${active ? "bg-hover" : "hover:bg-hover"}`}
    >
      {editing ? (
        <NameEditor conversation={conversation} branch={branch} onDone={on.onEdited} />
      ) : (
        <div
          className={`flex min-h-11 items-center gap-1 pe-1 ${live && !active ? "cursor-default" : "cursor-pointer"}`}
        >
          {expanded !== null ? (
            <IconButton
              tabIndex={-1} // for pointers; the left and right keys do the same
              icon={expanded ? "chevronDown" : "chevronRight"}
              mirrored={!expanded}
              label={branching(expanded ? "branching.collapse" : "branching.expand", { name })}
              onClick={() => on.onExpand(!expanded)}
            />
          ) : (
            <span className={indented ? "w-9 shrink-0 pointer-coarse:w-11" : "w-1 shrink-0"} />
          )}
          <span className="flex min-w-0 grow flex-col py-1.5 text-sm">
            <span
              id={`${id}-name`}
              dir="auto"
              className={`max-w-full self-start font-medium wrap-anywhere ${branch.name === "" ? "line-clamp-1" : ""}`}
            >
              {name}
            </span>
            <Details id={`${id}-details`} branch={branch} active={active} />
          </span>
          <Menu
            align="end"
            trigger={<IconButton icon="dots" label={t("pages.row.menu", { title: name })} tabIndex={stop ? 0 : -1} />}
          >
            <MenuItem icon="route" disabled={active || live} onSelect={on.onShow}>
              {branching("branching.show")}
            </MenuItem>
            <MenuItem icon="edit" onSelect={on.onEdit}>
              {t("pages.rename.do")}
            </MenuItem>
            <MenuItem icon="copy" disabled={branch.head_message_id === null || (active && live)} onSelect={on.onCopy}>
              {branching("branching.copy")}
            </MenuItem>
          </Menu>
        </div>
      )}
    </div>
  );
}

/** What is known of a branch: how old it is, and if it has a name, how it begins. */
function Details({ id, branch, active }: { id: string; branch: Branch; active: boolean }) {
  const { t, intl } = useLocalization();
  const branching = useMessages(branchingMessages);
  const { name, preview, created_at, base_depth: at, head_depth: count } = branch;
  const [value, unit] = ageOf(Date.now() - Date.parse(created_at));
  return (
    <span id={id} className="flex flex-wrap gap-x-3 text-soft">
      {active && (
        <span className="flex items-center gap-1 font-medium text-ink">
          <Icon name="check" size={14} />
          {branching("branching.active")}
        </span>
      )}{" "}
      <time dateTime={created_at} title={intl.formatDate(created_at, { dateStyle: "full", timeStyle: "short" })}>
        {intl.formatRelativeTime(-value, unit, { numeric: "auto" })}
      </time>{" "}
      <span>{t("pages.share.count", { count })}</span> {at > 0 && <span>{branching("branching.starts", { at })}</span>}{" "}
      {name !== "" && preview !== "" && (
        <bdi dir="auto" className="w-full truncate">
          {beginningOf(preview)}
        </bdi>
      )}
    </span>
  );
}

interface EditorProps {
  conversation: string;
  branch: Branch;
  onDone: (renamed: boolean) => void;
}

/** Why a name was not stored: another device has set a name (empty: removed it), or the request failed. */
type Problem = { current: string } | "failed";

/**
 * The editor of a name. Enter stores it, and Esc closes the editor. If another device has renamed the branch since the
 * editor was opened, it keeps the text and shows the current name; storing it again replaces that.
 */
function NameEditor({ conversation, branch, onDone }: EditorProps) {
  const { t } = useLocalization();
  const branching = useMessages(branchingMessages);
  const id = useId();
  const editor = useRef<HTMLDivElement>(null);
  const field = useRef<HTMLInputElement>(null);
  /** The name that the text replaces, with its version. */
  const base = useRef({ name: branch.name, version: branch.version });
  const [text, setText] = useState(branch.name);
  const [problem, setProblem] = useState<Problem | null>(null);
  const unnamed = useNameOf()({ ...branch, name: "" });
  const pending = useRef(false);
  useEffect(() => {
    // After the menu has closed: it returns the focus to its button.
    const frame = requestAnimationFrame(() => {
      field.current?.focus();
      field.current?.select();
    });
    return () => cancelAnimationFrame(frame);
  }, []);
  const cancel = useEffectEvent(() => onDone(false));
  useEffect(() => {
    // Before the dialog gets the key, which would close it.
    const onKey = (event: KeyboardEvent) => {
      if (event.key !== "Escape" || editor.current?.contains(document.activeElement) !== true) return;
      event.stopPropagation();
      if (!event.isComposing && event.keyCode !== 229) cancel();
    };
    window.addEventListener("keydown", onKey, true);
    return () => window.removeEventListener("keydown", onKey, true);
  }, []);
  /** Does nothing if the user has closed the editor in the meantime. */
  const done = (renamed: boolean) => editor.current !== null && onDone(renamed);
  const store = async () => {
    const name = text.trim();
    if (pending.current) return;
    if (name === base.current.name) return onDone(false);
    pending.current = true;
    setProblem(null);
    try {
      await renameBranch(conversation, branch.branch_id, name, base.current.version);
      done(true);
    } catch (refusal) {
      noticeSignOut(refusal);
      const current =
        refusal instanceof Refusal && refusal.code === "stale_version"
          ? (refusal.problem?.current as unknown as Branch)
          : null;
      if (current === null) return setProblem("failed");
      base.current = current;
      cacheBranch(conversation, current);
      if (current.name === name) return void done(true); // the response to the first request was lost
      setProblem({ current: current.name });
      field.current?.focus();
    } finally {
      pending.current = false;
    }
  };
  return (
    <div ref={editor} className="flex flex-col gap-1.5 px-1 py-1.5">
      <div className="flex flex-wrap items-center gap-1.5">
        <input
          ref={field}
          dir="auto"
          aria-label={branching("branching.name")}
          aria-describedby={problem === null ? undefined : `${id}-problem`}
          maxLength={maxTitle}
          placeholder={unnamed}
          value={text}
          onChange={(event) => setText(event.target.value)}
          onKeyDown={(event) => {
            event.stopPropagation();
            if (event.nativeEvent.isComposing || event.keyCode === 229) return;
            if (event.key === "Enter") void store();
          }}
          className="min-h-9 min-w-0 grow basis-40 rounded-md border border-edge bg-raised px-2 text-base md:text-sm pointer-coarse:min-h-11"
        />
        <span className="flex gap-1.5">
          <Button onClick={() => onDone(false)}>{t("pages.cancel")}</Button>
          <Button look="primary" onClick={() => void store()}>
            {t("pages.projects.save")}
          </Button>
        </span>
      </div>
      <p
        id={`${id}-problem`}
        role="alert"
        className={problem === null ? "sr-only" : "flex items-start gap-1.5 text-sm text-danger wrap-anywhere"}
      >
        {problem !== null && (
          <>
            <Icon name="warning" size={16} />
            <span>
              {problem === "failed"
                ? branching("branching.not_renamed")
                : problem.current === ""
                  ? branching("branching.name_removed")
                  : branching("branching.overtaken", { name: problem.current })}
            </span>
          </>
        )}
      </p>
    </div>
  );
}
