// The API's page: its OpenAPI description, for people.
import { ask, byId, element, pagesOf, trouble } from "/assets/common.js";

function operation(path, method, said) {
  const parameters = said.parameters ?? [];
  const body = said.requestBody?.content["application/json"].schema;
  return element(
    "section",
    { class: "operation" },
    element("h2", {}, element("code", {}, `${method.toUpperCase()} ${path}`)),
    element("p", {}, `${said.summary}.`),
    parameters.length ? parameterTable(path, parameters) : null,
    body ? element("p", {}, "Body: ", element("code", {}, inWords(body))) : null,
    element("p", {}, "Answer: ", element("code", {}, inWords(said.responses["200"].content["application/json"].schema))),
    method === "get" && !parameters.some((one) => one.required || one.name === "head")
      ? element("p", {}, element("a", { href: path }, "Try it"))
      : null,
  );
}

function parameterTable(path, parameters) {
  const titles = ["Parameter", "Value", "Meaning"].map((title) => element("th", { scope: "col" }, title));
  const rows = parameters.map((one) =>
    element(
      "tr",
      {},
      element("th", { scope: "row" }, element("code", {}, one.name), one.required ? " (needed)" : ""),
      element("td", {}, values(one.schema)),
      element("td", {}, one.description),
    ),
  );
  return element(
    "div",
    { class: "table", role: "region", tabindex: "0", "aria-label": `Parameters of ${path}` },
    element("table", {}, element("thead", {}, element("tr", {}, ...titles)), element("tbody", {}, ...rows)),
  );
}

function values(schema) {
  const kind = schema.enum ? schema.enum.join(" or ") : schema.type === "string" ? "text" : `${schema.minimum} to ${schema.maximum}`;
  return schema.default === undefined ? kind : `${kind}; ${schema.default} if not given`;
}

/** A schema in one line: its keys, lists in brackets. */
function inWords(schema) {
  if (schema.$ref) return schema.$ref.split("/").pop();
  if (schema.anyOf) return schema.anyOf.map(inWords).join(" | ");
  if (schema.type === "array") return `[${inWords(schema.items)}, …]`;
  if (schema.type === "object") {
    return `{${Object.entries(schema.properties).map(([name, value]) => `"${name}": ${inWords(value)}`).join(", ")}}`;
  }
  return [schema.type].flat().join(" | ");
}

function schemas(found) {
  const rows = Object.entries(found).map(([name, schema]) => [element("dt", {}, element("code", {}, name)), element("dd", {}, element("code", {}, inWords(schema)))]);
  return element("section", {}, element("h2", {}, "Objects"), element("dl", { class: "schemas" }, ...rows.flat()));
}

try {
  const [description, status] = await Promise.all([ask("/api/openapi.json"), ask("/api/status")]);
  pagesOf(status);
  const parts = Object.entries(description.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, said]) => operation(path, method, said)),
  );
  byId("paths").replaceChildren(...parts, schemas(description.components.schemas));
} catch (error) {
  trouble(error.status ? error.message : "The server does not answer.");
}
