// Requests to the server, with a token where it needs one.

const tokenKey = 'tamis-token';

// An error as the server tells it: a problem document (RFC 9457).
export class Problem extends Error {
  constructor(document) {
    super(document.detail || document.title || 'the server does not say why');
    this.title = document.title || 'Error';
    this.status = document.status || 0;
  }
}

// Asks the person for a token; set by the page. The argument: the one before was refused.
let askForToken = async () => '';
export function onTokenNeeded(ask) { askForToken = ask; }

let asking = null;
async function takeNewToken(refused) {
  asking ??= askForToken(refused).finally(() => { asking = null; });
  sessionStorage.setItem(tokenKey, await asking);
}

// The response, whose status is 200.
export async function request(method, path, { body, accept, signal } = {}) {
  while (true) {
    const token = sessionStorage.getItem(tokenKey);
    const headers = {};
    if (token) headers.Authorization = `Bearer ${token}`;
    if (accept) headers.Accept = accept;
    if (body !== undefined) headers['Content-Type'] = 'application/json';
    const response = await fetch(path, {
      method, headers, signal, cache: 'no-store', credentials: 'omit',
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    if (response.ok) return response;
    if (response.status === 401) {
      await takeNewToken(token !== null);
      continue;
    }
    let problem = { title: response.statusText, status: response.status };
    try { problem = await response.json(); } catch { /* no JSON: the status has to do */ }
    throw new Problem(problem);
  }
}

export const post = (path, body = {}) => request('POST', path, { body });

// The parts of a text that comes piece by piece, as the separator ends them. A rest that no separator ends is given last.
export async function* parts(response, separator) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  while (true) {
    const { value, done } = await reader.read();
    if (done) break;
    rest += value;
    let end;
    let from = 0;
    while ((end = rest.indexOf(separator, from)) >= 0) {
      yield rest.slice(from, end);
      from = end + separator.length;
    }
    rest = rest.slice(from);
  }
  if (rest) yield rest;
}
