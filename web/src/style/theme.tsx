// Applies the account's theme to the document.
import { useQuery } from "@tanstack/react-query";
import { useEffect } from "react";
import { sessionQuery, settingsQuery } from "../api/queries";
import { storePreference } from "../messages/localization";

export function ThemeEffect() {
  const session = useQuery({ ...sessionQuery, enabled: false });
  const settings = useQuery({ ...settingsQuery, enabled: session.data !== undefined });
  const theme = settings.data?.theme;
  useEffect(() => {
    if (theme === undefined) return;
    document.documentElement.dataset["theme"] = theme;
    storePreference("theme", theme);
  }, [theme]);
  return null;
}
