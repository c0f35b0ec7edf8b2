// The prompts of the account or of a project, with the dialogs that write and delete one.
import { useInfiniteQuery } from "@tanstack/react-query";
import { useRef, useState } from "react";
import { promptsQuery, uniquePrompts, type Prompt } from "../../api/prompts";
import { maxPromptName } from "../../generated/limits";
import { Button, IconButton } from "../../controls/button";
import { NotLoaded } from "../../controls/not-loaded";
import { SearchField, useSearchedText } from "../../controls/search-field";
import { ShowMore } from "../../controls/show-more";
import { useLocalization, useMessages } from "../../messages/localization";
import { promptMessages } from "../../messages/prompts";
import { DeletePromptDialog } from "./prompt-delete";
import { PromptDialog } from "./prompt-dialog";

interface PromptListProps {
  /** null: the prompts of the account. */
  project: string | null;
  readOnly?: boolean;
}

type Opened = { what: "new" } | { what: "edit" | "delete"; prompt: Prompt };

/** As many prompts are found at a glance. */
const searchedFrom = 8;

export function PromptList({ project, readOnly = false }: PromptListProps) {
  const { t } = useLocalization();
  const text = useMessages(promptMessages);
  const [typed, setTyped] = useState("");
  const query = useInfiniteQuery(promptsQuery(project, useSearchedText(typed)));
  const [opened, setOpened] = useState<Opened | null>(null);
  const list = useRef<HTMLUListElement>(null);
  const prompts = uniquePrompts(query.data?.pages ?? []);
  const close = () => setOpened(null);
  if (query.data === undefined)
    return query.isError ? (
      <NotLoaded again={query.refetch}>{text("prompts.not_loaded")}</NotLoaded>
    ) : (
      <p role="status" className="py-3 text-sm text-soft">
        {t("pages.list.loading")}
      </p>
    );
  return (
    <>
      {(typed !== "" || prompts.length >= searchedFrom) && (
        <div className="flex py-3">
          <SearchField label={text("prompts.search")} value={typed} onChange={setTyped} maxLength={maxPromptName} />
        </div>
      )}
      <ul ref={list} tabIndex={-1} aria-label={t("pages.prompts.title")} className="divide-y divide-line outline-none">
        {prompts.map((prompt) => (
          <Row
            key={prompt.prompt_id}
            prompt={prompt}
            readOnly={readOnly}
            open={(what) => setOpened({ what, prompt })}
          />
        ))}
        {prompts.length === 0 && (
          <li className="py-3 text-sm text-soft">{text(typed === "" ? "prompts.empty" : "prompts.none")}</li>
        )}
      </ul>
      <ShowMore label={t("pages.archive.more")} {...query} />
      {!readOnly && (
        <Button icon="add" className="my-3 w-fit" onClick={() => setOpened({ what: "new" })}>
          {text("prompts.new")}
        </Button>
      )}
      {opened?.what === "new" && <PromptDialog prompt={null} project={project} onClose={close} />}
      {opened?.what === "edit" && <PromptDialog prompt={opened.prompt} project={project} onClose={close} />}
      {opened?.what === "delete" && (
        <DeletePromptDialog prompt={opened.prompt} onClose={close} afterDeletion={() => list.current} />
      )}
    </>
  );
}

interface RowProps {
  prompt: Prompt;
  readOnly: boolean;
  open: (what: "edit" | "delete") => void;
}

function Row({ prompt, readOnly, open }: RowProps) {
  const t = useMessages(promptMessages);
  return (
    <li className="flex items-center gap-1 py-2.5">
      <span className="flex min-w-0 grow flex-col text-sm">
        <span className="flex font-medium">
          <bdi className="wrap-anywhere">/{prompt.name}</bdi>
        </span>
        <span dir="auto" className="truncate text-as-parent text-soft">
          {prompt.description || prompt.text.slice(0, 200)}
        </span>
      </span>
      {!readOnly && (
        <>
          <IconButton icon="edit" label={t("prompts.edit")} target={prompt.name} onClick={() => open("edit")} />
          <IconButton icon="trash" label={t("prompts.delete")} target={prompt.name} onClick={() => open("delete")} />
        </>
      )}
    </li>
  );
}
