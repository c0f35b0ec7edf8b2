// Settings: what models may use beyond a conversation. A change is stored at once.
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { api, body, Refusal } from "../../api/client";
import { consentsQuery, queryClient } from "../../api/queries";
import { Check } from "../../controls/form-controls";
import { NotLoaded } from "../../controls/not-loaded";
import { toast } from "../../controls/toast";
import { useLocalization } from "../../messages/localization";

/** The sources that the app offers, in this order. */
const sources = ["conversations", "location"] as const;

export function Privacy() {
  const { t } = useLocalization();
  const { data, isError, refetch } = useQuery(consentsQuery);
  const [pending, setPending] = useState<Partial<Record<(typeof sources)[number], boolean>>>({});
  if (isError && data === undefined) return <NotLoaded again={refetch}>{t("pages.privacy.not_loaded")}</NotLoaded>;
  if (data === undefined) return null;
  const put = async (source: (typeof sources)[number], granted: boolean) => {
    setPending((before) => ({ ...before, [source]: granted }));
    try {
      const stored = await body(
        api.PUT("/memory-sources/{source}/consent", { params: { path: { source } }, body: { granted } }),
      );
      await queryClient.cancelQueries({ queryKey: consentsQuery.queryKey });
      queryClient.setQueryData(
        consentsQuery.queryKey,
        (list) => list && { ...list, data: list.data.map((one) => (one.source === source ? stored : one)) },
      );
    } catch (refusal) {
      if (!(refusal instanceof Refusal)) throw refusal;
      toast(t(refusal.outcomeUnknown ? "pages.settings.outcome_unknown" : "pages.settings.refused"), {
        kind: "problem",
      });
      await refetch();
    } finally {
      setPending(({ [source]: _, ...others }) => others);
    }
  };
  return (
    <div className="py-2">
      {sources.map((source) => (
        <Check
          key={source}
          label={t(`pages.privacy.${source}`)}
          hint={t(`pages.privacy.${source}_hint`)}
          checked={pending[source] ?? data.data.some((one) => one.source === source && one.granted)}
          onChange={(granted) => void put(source, granted)}
        />
      ))}
    </div>
  );
}
