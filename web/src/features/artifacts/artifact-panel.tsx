// The panel: beside the conversation where there is space, otherwise in front of the whole page. It shows the list of the
// artifacts, or one of them.
import { useQuery } from "@tanstack/react-query";
import { Dialog } from "radix-ui";
import { useEffect, useRef, useState, type ComponentProps, type KeyboardEvent, type ReactNode } from "react";
import { focusToWrite } from "../composer";
import { IconButton } from "../../controls/button";
import { useMedia } from "../../controls/media";
import { NotLoaded } from "../../controls/not-loaded";
import { useLocalization, useMessages } from "../../messages/localization";
import { artifactMessages } from "../../messages/artifact-panel";
import { ArtifactView, initiallyShown } from "./artifact-view";
import { allArtifacts, type Opened } from "./opened";
import { artifactsQuery, type Artifact } from "./queries";

type View = Pick<ComponentProps<typeof ArtifactView>, "shown" | "onShow">;

interface PanelProps {
  conversation: string;
  opened: string;
  onOpen: (opened: Opened) => void;
}

export function ArtifactPanel(props: PanelProps) {
  const wide = useMedia("(min-width: 64rem)");
  const close = () => props.onOpen(undefined);
  // Here, so that it stays when the window gets wider or narrower.
  const [shown, show] = useState({ ...initiallyShown, artifact: props.opened });
  const view: View = {
    shown: shown.artifact === props.opened ? shown : initiallyShown,
    onShow: (wanted) => show({ ...wanted, artifact: props.opened }),
  };
  return wide ? (
    <Aside onClose={close}>
      <Content {...props} {...view} />
    </Aside>
  ) : (
    <FullScreen onClose={close}>
      <Content {...props} {...view} onFix={() => (close(), requestAnimationFrame(focusToWrite))} />
    </FullScreen>
  );
}

interface FrameProps {
  onClose: () => void;
  children: ReactNode;
}

function Aside({ onClose, children }: FrameProps) {
  const t = useMessages(artifactMessages);
  const [before] = useState(() => document.activeElement);
  const aside = useRef<HTMLElement>(null);
  useEffect(() => {
    const opener = before instanceof HTMLElement && before !== document.body ? before : null;
    // On a page that was just loaded, the focus stays where it is.
    if (opener !== null) aside.current?.querySelector("h2")?.focus();
    return () => {
      const lost = document.activeElement === null || document.activeElement === document.body;
      if (lost && opener?.isConnected === true) opener.focus();
    };
  }, [before]);
  const onKeyDown = (event: KeyboardEvent) => {
    // Lists and text fields have their own use for the key.
    if (event.key !== "Escape" || (event.target as HTMLElement).matches("textarea, select")) return;
    event.preventDefault(); // it does not stop the answer
    onClose();
  };
  return (
    <aside
      ref={aside}
      aria-label={t("artifacts.title")}
      onKeyDown={onKeyDown}
      className="flex w-1/2 max-w-4xl shrink-0 flex-col border-s border-line bg-paper short:overflow-y-auto"
    >
      {children}
    </aside>
  );
}

function FullScreen({ onClose, children }: FrameProps) {
  const t = useMessages(artifactMessages);
  // Radix returns the focus only to a trigger of its own, and this dialog has none.
  const [before] = useState(() => document.activeElement);
  return (
    <Dialog.Root open onOpenChange={(open) => open || onClose()}>
      <Dialog.Portal>
        <Dialog.Content
          aria-describedby={undefined}
          onOpenAutoFocus={(event) => {
            event.preventDefault();
            (event.currentTarget as HTMLElement).querySelector("h2")?.focus();
          }}
          onCloseAutoFocus={(event) => {
            event.preventDefault();
            if (before instanceof HTMLElement) before.focus();
          }}
          className="fixed inset-0 z-40 flex flex-col bg-paper short:overflow-y-auto pt-[env(safe-area-inset-top)] pb-[env(safe-area-inset-bottom)] outline-none"
        >
          <Dialog.Title className="sr-only">{t("artifacts.title")}</Dialog.Title>
          {children}
        </Dialog.Content>
      </Dialog.Portal>
    </Dialog.Root>
  );
}

interface ContentProps extends PanelProps, View {
  /** Called after a message was written into the composer; absent: the composer takes the focus. */
  onFix?: () => void;
}

function Content({ conversation, opened, onOpen, onFix = focusToWrite, ...view }: ContentProps) {
  const t = useMessages(artifactMessages);
  const { data: list, isError, refetch } = useQuery(artifactsQuery(conversation));
  const heading = useRef<HTMLHeadingElement>(null);
  const previous = useRef(opened);
  useEffect(() => {
    if (previous.current !== opened) heading.current?.focus(); // the pressed button is removed
    previous.current = opened;
  }, [opened]);
  const artifact = list?.find(({ artifact_id }) => artifact_id === opened);
  const others = (list?.length ?? 0) > (artifact === undefined ? 0 : 1);
  return (
    <>
      <div className="flex min-h-13 shrink-0 items-center gap-1 px-2">
        {opened !== allArtifacts && others && (
          <IconButton icon="chevronLeft" mirrored label={t("artifacts.all")} onClick={() => onOpen(allArtifacts)} />
        )}
        <h2
          ref={heading}
          tabIndex={-1}
          dir="auto"
          className="min-w-0 grow truncate px-1.5 text-sm font-medium text-as-parent outline-none"
        >
          {artifact?.title ?? t("artifacts.title")}
        </h2>
        <IconButton icon="close" label={t("artifacts.close")} onClick={() => onOpen(undefined)} />
      </div>
      {list === undefined ? (
        <div className="p-4">
          {isError ? (
            <NotLoaded again={refetch}>{t("artifacts.not_loaded")}</NotLoaded>
          ) : (
            <p role="status" className="text-sm text-soft">
              {t("pages.list.loading")}
            </p>
          )}
        </div>
      ) : artifact !== undefined ? (
        <ArtifactView
          key={artifact.artifact_id}
          {...view}
          artifact={artifact}
          conversation={conversation}
          onFix={onFix}
        />
      ) : opened === allArtifacts ? (
        <List list={list} onOpen={onOpen} />
      ) : (
        <p role="alert" className="p-4 text-sm text-soft">
          {t("artifacts.gone")}
        </p>
      )}
    </>
  );
}

function List({ list, onOpen }: { list: readonly Artifact[]; onOpen: (opened: Opened) => void }) {
  const t = useMessages(artifactMessages);
  const { intl } = useLocalization();
  return (
    <ul className="min-h-0 grow overflow-y-auto px-2 pb-4">
      {list.map(({ artifact_id, title, kind, version, updated_at }) => (
        <li key={artifact_id}>
          <button
            type="button"
            onClick={() => onOpen(artifact_id)}
            className="flex min-h-11 w-full flex-col justify-center rounded-md px-2 py-1.5 text-start text-sm hover:bg-hover"
          >
            <bdi className="max-w-full truncate font-medium">{title}</bdi>
            <span className="text-xs text-faint">
              {t("artifacts.card", { kind: t(`artifacts.kind.${kind}`), version })}
              {" · "}
              {intl.formatDate(updated_at, { dateStyle: "medium", timeStyle: "short" })}
            </span>
          </button>
        </li>
      ))}
      {list.length === 0 && <li className="px-2 text-sm text-soft">{t("artifacts.none")}</li>}
    </ul>
  );
}
