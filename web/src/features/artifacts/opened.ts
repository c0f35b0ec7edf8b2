// What the panel shows is in the URL, so that it is the same after a reload.
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useCallback } from "react";

/** The value for the list of all artifacts. */
export const allArtifacts = "all";

/** An artifact, or the list of all artifacts; undefined: the panel is closed. */
export type Opened = string | undefined;

/** Returns what the panel shows, and the function that changes it. */
export function useOpenedArtifact(): [opened: Opened, open: (wanted: Opened) => void] {
  const { artifact } = useSearch({ strict: false });
  const navigate = useNavigate();
  const open = useCallback(
    (wanted: Opened) =>
      void navigate({
        to: ".",
        search: wanted === undefined ? {} : { artifact: wanted },
        replace: wanted === undefined,
      }),
    [navigate],
  );
  return [artifact, open];
}
