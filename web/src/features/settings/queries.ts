// What only the settings read of the account.
import { queryOptions } from "@tanstack/react-query";
import { api, body } from "../../api/client";
import { pagedQuery } from "../../api/paged-query";

/** The instructions of the account for all of its conversations. */
export const instructionsQuery = queryOptions({
  queryKey: ["instructions"],
  queryFn: () => body(api.GET("/account/instructions")),
  refetchOnWindowFocus: "always",
});

export const devicesQuery = pagedQuery(["devices"], 100, (query) => api.GET("/auth/sessions", { params: { query } }));

export const identitiesQuery = pagedQuery(["identities"], 100, (query) =>
  api.GET("/account/identities", { params: { query } }),
);

export const securityLogQuery = pagedQuery(["security-log"], 10, (query) =>
  api.GET("/account/security-log", { params: { query } }),
);
