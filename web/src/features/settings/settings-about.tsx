// Settings: the build, the environment and the model family of the service.
import { queryOptions, useQuery } from "@tanstack/react-query";
import { api, body } from "../../api/client";
import { useMessages } from "../../messages/localization";
import { settingsMessages } from "../../messages/settings";
import { Section } from "./section";

const versionQuery = queryOptions({
  queryKey: ["version"],
  queryFn: () => body(api.GET("/version")),
  staleTime: Infinity,
});

export function About() {
  const t = useMessages(settingsMessages);
  const { data } = useQuery(versionQuery);
  return (
    <Section id="build" title={t("pages.about.title")}>
      <dl className="grid grid-cols-[auto_1fr] gap-x-6 gap-y-1 py-3 text-sm">
        <dt className="text-soft">{t("settings.about.build")}</dt>
        <dd className="font-mono wrap-anywhere">
          {data === undefined ? "…" : (data.build_sha ?? t("settings.about.no_build"))}
        </dd>
        <dt className="text-soft">{t("settings.about.environment")}</dt>
        <dd>{data?.environment ?? "…"}</dd>
        <dt className="text-soft">{t("settings.about.model")}</dt>
        <dd>{data?.model_provider_family ?? "…"}</dd>
      </dl>
    </Section>
  );
}
