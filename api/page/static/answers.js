// Questions to the agent: progress while an answer is made, conversations, citations that open
// in place, and feedback of the reader. Markup comes from the server alone.
"use strict";

let address = location.pathname + location.search; // the address of the shown page

// Not with `crypto.randomUUID`, which browsers deny to pages without TLS.
function newThread() {
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

async function* events(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let left = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const blocks = (left + value).split("\n\n");
    left = blocks.pop();
    for (const block of blocks) {
      const [, kind, data] = block.match(/^event: (.*)\ndata: (.*)$/);
      yield { kind, data: JSON.parse(data) };
    }
  }
}

function outcomeIn(markup) {
  const outcome = new DOMParser().parseFromString(markup, "text/html").querySelector("#outcome");
  return document.adoptNode(outcome);
}

// The outcome that the server makes of a form; `tell` is called with each stage of its work.
async function answerTo(form, fields, tell) {
  let response;
  try {
    response = await reach(form.dataset.ask, { method: "POST", headers: TOKEN, body: fields });
    if (!response.ok) {
      const parsed = new DOMParser().parseFromString(await response.text(), "text/html");
      const problem = parsed.querySelector(".problem");
      if (problem) return document.adoptNode(problem);
      throw UNREACHABLE;
    }
    let again = 0;
    for await (const { kind, data } of events(response)) {
      if (kind === "outcome") return outcomeIn(data);
      again += data === "searching";
      tell(`${data[0].toUpperCase()}${data.slice(1)}${again > 1 ? `, try ${again}` : ""} …`);
    }
  } catch (problem) {
    if (problem === ENDED) return problemOf(ENDED);
    // reported below: the server, or the connection to it, ended
  }
  return problemOf(UNREACHABLE);
}

async function ask(form) {
  const fields = new URLSearchParams(new FormData(form));
  fields.set("ask", "1");
  if (!fields.has("thread")) fields.set("thread", newThread());
  const buttons = [...document.querySelectorAll(".asks button[type=submit]")];
  const doing = element("p", "Asking …", "doing");
  doing.setAttribute("role", "status");
  document.querySelectorAll(".doing, .follow-up ~ .problem").forEach((past) => past.remove());
  if (form.classList.contains("follow-up")) form.after(doing);
  else byId("outcome").replaceChildren(doing);
  buttons.forEach((button) => (button.disabled = true));
  const made = await answerTo(form, fields, (word) => (doing.textContent = word));
  buttons.forEach((button) => (button.disabled = false));
  if (made.id !== "outcome") {
    doing.replaceWith(made);
    return;
  }
  byId("outcome").replaceWith(made);
  document.querySelectorAll("#main > .hint").forEach((past) => past.remove());
  byId("q").value = fields.get("q");
  address = `/?${fields}`;
  history.pushState(null, "", address);
  document.title = `${fields.get("q")} · Callslip`;
  const heading = document.getElementById("answer-heading");
  heading?.focus({ preventScroll: true });
  heading?.scrollIntoView({ block: "nearest" });
}

document.addEventListener("submit", (event) => {
  const form = event.target.closest("form.asks");
  if (!form || event.submitter?.name !== "ask") return;
  event.preventDefault();
  ask(form);
});

window.addEventListener("popstate", () => {
  if (location.pathname + location.search !== address) location.reload();
});

document.addEventListener("click", (event) => {
  const mark = event.target.closest("a.cited");
  if (!mark || event.ctrlKey || event.metaKey || event.shiftKey) return;
  const citation = byId(mark.hash.slice(1));
  const link = citation.querySelector("a.in-context");
  if (!link) return; // the mark leads to the citation
  event.preventDefault();
  const opened = citation.querySelector(".context");
  if (opened) (opened.querySelector(".sentence") ?? opened).scrollIntoView({ block: "center" });
  else link.click();
  link.focus({ preventScroll: true });
});

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-verdict]");
  if (!button) return;
  const feedback = button.closest(".feedback");
  const { url, trace } = feedback.dataset;
  const buttons = [...feedback.querySelectorAll("button")];
  buttons.forEach((each) => (each.disabled = true));
  try {
    await call(url, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ trace_id: trace, verdict: button.dataset.verdict }),
    });
    feedback.querySelector(".message").textContent = `Noted: ${button.textContent.toLowerCase()}.`;
  } catch (problem) {
    buttons.forEach((each) => (each.disabled = false));
    feedback.querySelector(".message").replaceChildren(problemOf(problem));
  }
});
