// Applies the account's theme to the document.
import { useQuery } from "@tanstack/react-query";
import { useEffect } from "react";
import { sessionQuery, settingsQuery } from "../api/queries";
import { remember } from "../words/speech";

export function Look() {
  const session = useQuery({ ...sessionQuery, enabled: false });
  const settings = useQuery({ ...settingsQuery, enabled: session.data !== undefined });
  const theme = settings.data?.theme;
  useEffect(() => {
    if (theme === undefined) return;
    document.documentElement.dataset["theme"] = theme;
    remember("theme", theme);
  }, [theme]);
  return null;
}
