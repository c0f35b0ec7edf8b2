// Settings: what models may use beyond a conversation. A change is stored at once.
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { consentsQuery, storeConsent } from "../../api/consents";
import { Refusal } from "../../api/client";
import { Check } from "../../controls/form-controls";
import { NotLoaded } from "../../controls/not-loaded";
import { toast } from "../../controls/toast";
import { consentMessages } from "../../messages/consents";
import { useMessages } from "../../messages/localization";
import { settingsMessages } from "../../messages/settings";

/** The sources that tools read, in this order. The others need no consent yet. */
const sources = ["conversations", "files", "projects", "location"] as const;
type Source = (typeof sources)[number];

export function Privacy() {
  const t = useMessages(settingsMessages);
  const text = useMessages(consentMessages);
  const { data, isError, refetch } = useQuery(consentsQuery);
  const [pending, setPending] = useState<Partial<Record<Source, { granted: boolean; precise: boolean }>>>({});
  if (isError && data === undefined) return <NotLoaded again={refetch}>{text("privacy.not_loaded")}</NotLoaded>;
  if (data === undefined) return null;
  const put = async (source: Source, granted: boolean, precise = false) => {
    setPending((before) => ({ ...before, [source]: { granted, precise } }));
    try {
      await storeConsent(source, granted, precise);
    } catch (refusal) {
      if (!(refusal instanceof Refusal)) throw refusal;
      toast(t(refusal.outcomeUnknown ? "settings.outcome_unknown" : "settings.refused"), {
        kind: "problem",
      });
      await refetch();
    } finally {
      setPending(({ [source]: _, ...others }) => others);
    }
  };
  const consentTo = (source: Source) => pending[source] ?? data.data.find((one) => one.source === source);
  const location = consentTo("location");
  return (
    <div className="py-2">
      {sources.map((source) => (
        <Check
          key={source}
          label={text(`privacy.${source}`)}
          hint={text(`privacy.${source}_hint`)}
          checked={consentTo(source)?.granted ?? false}
          onChange={(granted) => void put(source, granted)}
        />
      ))}
      {location?.granted === true && (
        <Check
          label={text("privacy.precise")}
          hint={text("privacy.precise_hint")}
          checked={location.precise}
          onChange={(precise) => void put("location", true, precise)}
        />
      )}
    </div>
  );
}
