# For ./run and ./test: progress that a person can follow, Debian packages, builds. Source it.
#
# Long output goes to a file under build/log, which is named when the step fails.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
log_dir=$root/build/log
mkdir -p "$log_dir"

say() { printf '\033[1m==>\033[0m %s\n' "$*"; }

# step NAME COMMAND...: runs the command with its output in build/log/NAME.log.
step() {
  local name=$1 log=$log_dir/$1.log started=$SECONDS
  shift
  if ! "$@" >"$log" 2>&1; then
    tail -n 30 "$log" >&2
    echo "$name failed; the whole output is in $log" >&2
    exit 1
  fi
  if (( SECONDS - started > 1 )); then say "$name: done in $((SECONDS - started)) s"; fi
}

# install_packages LIST...: installs what packages/LIST.txt names and the machine lacks.
install_packages() {
  local list name missing=() sudo=()
  for list in "$@"; do
    while read -r name; do
      [[ $name == "" || $name == \#* ]] && continue
      # A name may have the state of more than one architecture.
      [[ $(dpkg-query -W -f='${Status} ' "$name" 2>/dev/null) == *"install ok installed"* ]] ||
        missing+=("$name")
    done <"$root/packages/$list.txt"
  done
  (( ${#missing[@]} )) || return 0
  say "Installing ${#missing[@]} Debian packages: ${missing[*]}"
  if (( EUID != 0 )); then
    command -v sudo >/dev/null || {
      echo "cannot install packages: not root, and there is no sudo; as root run: apt-get install ${missing[*]}" >&2
      exit 1
    }
    sudo=(sudo)
  fi
  # libhwy-dev:arm64 wants that architecture allowed.
  for name in "${missing[@]}"; do
    if [[ $name == *:* ]]; then "${sudo[@]}" dpkg --add-architecture "${name#*:}"; fi
  done
  step apt-update "${sudo[@]}" apt-get update -q
  step apt-install "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -q -y --no-install-recommends "${missing[@]}"
}

# Shows lines "STEP STEPS" as progress: in place on a terminal, elsewhere a line for each tenth.
show_progress() {
  local step steps tenths=0
  while read -r step steps; do
    if [[ -t 1 ]]; then
      printf '\r    [%s/%s] ' "$step" "$steps"
    elif (( 10 * step / steps > tenths )); then
      tenths=$((10 * step / steps))
      printf '    %s0 %% (%s of %s steps)\n' "$tenths" "$step" "$steps"
    fi
  done
  if [[ -t 1 ]]; then printf '\r'; fi
}

# build PRESET TARGET...: configures if needed and builds, with progress.
build() {
  local preset=$1
  shift
  cd "$root"
  if [[ ! -f build/$preset/build.ninja ]]; then
    say "Configuring build/$preset"
    step "configure-$preset" cmake --preset "$preset"
  fi
  if [[ -n $(ninja -C "build/$preset" -n "$@" 2>&1 | grep -v -e 'no work to do' -e 'Entering directory') ]]; then
    say "Building build/$preset (the first time takes minutes; output in build/log/build-$preset.log)"
    if ! ninja -C "build/$preset" "$@" 2>&1 | tee "$log_dir/build-$preset.log" |
        sed -un 's/^\[\([0-9]*\)\/\([0-9]*\)\].*/\1 \2/p' | show_progress; then
      tail -n 30 "$log_dir/build-$preset.log" >&2
      echo "build failed; the whole output is in $log_dir/build-$preset.log" >&2
      exit 1
    fi
  fi
}

# tidy TARGET...: clang-tidy over the sources of the targets, in the build of preset tidy. It goes on
# after a fault, and at the end tells each once.
tidy() {
  local log=$log_dir/tidy.log
  cd "$root"
  [[ -f build/tidy/build.ninja ]] || step configure-tidy cmake --preset tidy
  say "Reading the sources with clang-tidy (output in build/log/tidy.log)"
  if ! ninja -C build/tidy -k 0 "$@" >"$log" 2>&1; then
    sed -n "s|^$root/||; / error: /p; / warning: /p; /^ninja: error/p" "$log" | sort -u >&2
    echo "clang-tidy found faults; the whole output is in $log" >&2
    return 1
  fi
  say "clang-tidy found no fault"
}
