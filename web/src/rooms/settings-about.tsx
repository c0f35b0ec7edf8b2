// Which service this is.
import { queryOptions, useQuery } from "@tanstack/react-query";
import { api, body } from "../api/client";
import { useSpeech } from "../words/speech";
import { Section } from "./section";

const versionQuery = queryOptions({ queryKey: ["version"], queryFn: () => body(api.GET("/version")), staleTime: Infinity });

export function About() {
  const { say } = useSpeech();
  const { data } = useQuery(versionQuery);
  return (
    <Section title={say("rooms.about.title")}>
      <dl className="grid grid-cols-[auto_1fr] gap-x-6 gap-y-1 text-sm">
        <dt className="text-soft">{say("rooms.about.build")}</dt>
        <dd className="font-mono wrap-anywhere">{data === undefined ? "…" : (data.build_sha ?? say("rooms.about.no_build"))}</dd>
        <dt className="text-soft">{say("rooms.about.environment")}</dt>
        <dd>{data?.environment ?? "…"}</dd>
        <dt className="text-soft">{say("rooms.about.model")}</dt>
        <dd>{data?.model_provider_family ?? "…"}</dd>
      </dl>
    </Section>
  );
}
