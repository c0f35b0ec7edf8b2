// Applies the account's theme to the document.
import { useQuery } from "@tanstack/react-query";
import { useEffect } from "react";
import { sessionQuery, settingsQuery } from "../api/queries";
import { useSettingsStore } from "../api/settings-store";
import { storePreference } from "../api/preference";

export function ThemeEffect() {
  const session = useQuery({ ...sessionQuery, enabled: false });
  const settings = useQuery({ ...settingsQuery, enabled: session.data !== undefined });
  // A refetch during a write may return the settings before it.
  const pending = useSettingsStore((store) => store.pending.theme);
  const theme = pending ?? settings.data?.theme;
  useEffect(() => {
    if (theme === undefined) return;
    document.documentElement.dataset["theme"] = theme;
    storePreference("theme", theme);
  }, [theme]);
  return null;
}
