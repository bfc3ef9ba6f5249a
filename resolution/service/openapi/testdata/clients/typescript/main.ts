// Calls all ten operations, and the account, with a client that is typed by what
// openapi-typescript made of the document.
import createClient from "openapi-fetch";
import type { components, paths } from "./api.js";

const { BASE_URL, API_KEY, RECEIVER } = process.env as Record<string, string>;
const client = createClient<paths>({ baseUrl: BASE_URL, headers: { Authorization: `Bearer ${API_KEY}` } });

// Fields with a default may be left out, and an email may be a hash of one.
const search: components["schemas"]["KeywordRequest"] = { keywords: ["rocket fuel"], date_start: "2026-11-01", date_end: "2026-11-20" };
const hash: components["schemas"]["EmailToHEMRequest"] = { email: "ecbf749d27be2a7d75d973d53b06de39", callback_url: RECEIVER };

function said<T>(operation: string, { data, error }: { data?: T; error?: unknown }): T {
  if (data === undefined) throw new Error(`${operation}: ${JSON.stringify(error)}`);
  console.log(operation);
  return data;
}

const profile = "https://network.example/in/ada-example";
const callback_url = RECEIVER;
const hems = said("email_to_hem", await client.POST("/lead/resolution/email_to_hem", { body: { email: "ada.example@bakery.example", callback_url } }));
if (hems.lead.hashed_emails[0].type !== "md5") throw new Error("no md5");
said("email_to_hem", await client.POST("/lead/resolution/email_to_hem", { body: hash }));
said("network_to_hem", await client.POST("/lead/resolution/network_to_hem", { body: { network_url: profile, callback_url } }));
said("network_to_phone", await client.POST("/lead/resolution/network_to_phone", { body: { network_url: profile, callback_url } }));
said("ip_to_company", await client.POST("/lead/resolution/ip_to_company", { body: { ip: "192.31.196.5" } }));
said("enrichment", await client.POST("/lead/enrichment", { body: { network_url: profile } }));
said("deanonymization", await client.POST("/lead/deanonymization", { body: { ip: "192.31.196.5" } }));
const list = said("keyword_to_lead", await client.POST("/resolve/keyword_to_lead", { body: search }));
const count = said("keyword_to_lead_count", await client.POST("/resolve/keyword_to_lead/count", { body: search }));
if (count.keywords[0] !== "rocket fuel") throw new Error("the request is not repeated");

for (;;) {
  const { data } = await client.POST("/resolve/keyword_to_lead/result", { body: { resolution_id: list.resolution.id } });
  if (data && "lead" in data) {
    console.log("keyword_to_lead_result");
    break;
  }
}
for (;;) {
  const { data } = await client.POST("/resolve/keyword_to_lead/count/result", { body: { resolution_id: count.resolution.id } });
  if (data && "lead" in data) {
    console.log("keyword_to_lead_count_result");
    break;
  }
}
said("account_balance", await client.GET("/account/balance"));
said("account_usage", await client.GET("/account/usage"));
said("account_resolutions", await client.GET("/account/resolutions", { params: { query: { status: "completed" } } }));
