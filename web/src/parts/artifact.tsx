// An artifact that an answer has written: a link that opens it beside the conversation.
import { Link } from "@tanstack/react-router";
import { Icon } from "../controls/icon";
import type { MessageKey } from "../messages/catalog";
import { useLocalization } from "../messages/localization";
import type { PartView } from "../turn/fold";

export function ArtifactCard({ part }: { part: PartView }) {
  const { t } = useLocalization();
  const { artifact_id, title = "", kind, version = 1 } = part;
  if (artifact_id === undefined) return null;
  return (
    <Link
      to="."
      search={{ artifact: artifact_id }}
      className="my-3 flex min-h-11 w-fit max-w-full items-center gap-3 rounded-md border border-line bg-raised px-4 py-2 text-sm hover:border-edge"
    >
      <Icon name="fileText" />
      <span className="flex min-w-0 flex-col">
        <bdi className="truncate font-medium">{title}</bdi>
        <span className="text-xs text-faint">
          {t("artifacts.card", { kind: t(`artifacts.kind.${kind}` as MessageKey), version })}
        </span>
      </span>
    </Link>
  );
}
