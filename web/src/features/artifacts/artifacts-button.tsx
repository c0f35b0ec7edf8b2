// The button in the header of a conversation that opens its artifacts, if it has any.
import { useQuery } from "@tanstack/react-query";
import { IconButton } from "../../controls/button";
import { useLocalization } from "../../messages/localization";
import { allArtifacts, useOpenedArtifact } from "./opened";
import { artifactsQuery } from "./queries";

export function ArtifactsButton({ conversation }: { conversation: string }) {
  const { t } = useLocalization();
  const { data: list = [] } = useQuery(artifactsQuery(conversation));
  const [opened, open] = useOpenedArtifact();
  if (list.length === 0) return null;
  const first = list.length === 1 ? list[0]!.artifact_id : allArtifacts;
  return (
    <IconButton
      icon="fileText"
      label={t("artifacts.count", { count: list.length })}
      aria-expanded={opened !== undefined}
      className="md:ms-auto"
      onClick={() => open(opened === undefined ? first : undefined)}
    />
  );
}
