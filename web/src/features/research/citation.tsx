// A number of a report that opens what its source says: while the pointer is on it or it has the keyboard focus, and when it
// is pressed, which also moves the focus into what has opened.
import { useQuery } from "@tanstack/react-query";
import { Popover } from "radix-ui";
import { useEffect, useRef, useState } from "react";
import { NotLoaded } from "../../controls/not-loaded";
import { useMessages } from "../../messages/localization";
import { researchMessages } from "../../messages/research";
import type { CitationProps } from "../../parts/cited";
import { reportQuery, sourcesQuery } from "./queries";
import { SourceContent } from "./source";

/** Milliseconds that the pointer rests on the number, or is away from both, before something happens. */
const hoverDelay = 200;

export function Citation({ number, conversation, report }: CitationProps) {
  const t = useMessages(researchMessages);
  const [open, setOpen] = useState(false);
  /** Whether it was opened by a press, so that it stays when the pointer leaves. */
  const pressed = useRef(false);
  const timer = useRef(0);
  /** Whether the focus returns to the number, which opens nothing. */
  const returning = useRef(false);
  const button = useRef<HTMLButtonElement>(null);
  const content = useRef<HTMLDivElement>(null);
  useEffect(() => () => clearTimeout(timer.current), []);
  const later = (wanted: boolean) => {
    clearTimeout(timer.current);
    timer.current = window.setTimeout(() => (wanted || !pressed.current) && setOpen(wanted), hoverDelay);
  };
  const change = (wanted: boolean) => {
    clearTimeout(timer.current);
    if (!wanted) pressed.current = false;
    setOpen(wanted);
  };
  const hover = {
    onPointerEnter: ({ pointerType }: React.PointerEvent) => pointerType === "mouse" && later(true),
    onPointerLeave: ({ pointerType }: React.PointerEvent) => pointerType === "mouse" && later(false),
  };
  return (
    <Popover.Root open={open} onOpenChange={change}>
      <Popover.Anchor asChild>
        <button
          ref={button}
          type="button"
          data-citation={number}
          aria-label={t("research.citation", { number })}
          aria-haspopup="dialog"
          aria-expanded={open}
          {...hover}
          onFocus={({ currentTarget }) => !returning.current && currentTarget.matches(":focus-visible") && later(true)}
          onBlur={({ relatedTarget }) =>
            content.current?.contains(relatedTarget) !== true && !pressed.current && change(false)
          }
          onClick={() => {
            if (open && pressed.current) return change(false);
            pressed.current = true;
            change(true);
            requestAnimationFrame(() => content.current?.focus());
          }}
          className="-mx-0.5 rounded-sm px-0.5 text-[0.85em] font-medium text-accent tabular-nums hover:bg-accent-wash pointer-coarse:-mx-1 pointer-coarse:px-1 pointer-coarse:py-0.5"
        >
          [{number}]
        </button>
      </Popover.Anchor>
      <Popover.Portal>
        <Popover.Content
          ref={content}
          tabIndex={-1}
          aria-label={t("research.citation", { number })}
          side="bottom"
          sideOffset={4}
          collisionPadding={8}
          onOpenAutoFocus={(event) => event.preventDefault()}
          onCloseAutoFocus={(event) => {
            event.preventDefault();
            // The number may have been left on purpose.
            if (document.activeElement !== null && document.activeElement !== document.body) return;
            returning.current = true;
            button.current?.focus();
            returning.current = false;
          }}
          onKeyDown={(event) => event.key === "Escape" && event.stopPropagation()}
          {...hover}
          className="z-50 max-h-[min(20rem,60dvh)] w-[min(26rem,calc(100vw-1rem))] overflow-y-auto rounded-md border border-line bg-raised p-3 text-sm shadow-float outline-none"
        >
          <Source number={number} conversation={conversation} report={report} />
        </Popover.Content>
      </Popover.Portal>
    </Popover.Root>
  );
}

function Source({ number, conversation, report }: CitationProps) {
  const t = useMessages(researchMessages);
  const task = useQuery(reportQuery(conversation, report));
  const id = task.data?.task_id;
  const sources = useQuery({ ...sourcesQuery(id ?? ""), enabled: id !== undefined });
  if (task.isError || sources.isError)
    return (
      <NotLoaded again={() => Promise.all([task.refetch(), sources.refetch()])}>{t("research.not_loaded")}</NotLoaded>
    );
  if (task.data === null) return <p className="text-soft">{t("research.citation.unknown")}</p>;
  if (sources.data === undefined) return <p role="status">{t("research.loading")}</p>;
  const source = sources.data.find((one) => one.number === number);
  return source === undefined ? (
    <p className="text-soft">{t("research.citation.unknown")}</p>
  ) : (
    <SourceContent source={source} />
  );
}
