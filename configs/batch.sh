# What the batch scripts for PBS, LSF and Grid Engine have in common: a scheduler and the search on the job's first node, workers on all.
#
# Each of these scripts asks for nodes, sets the variables that are read here, and ends with `source batch.sh`:
#
#     settings                    name of the file of settings
#     folder, job                 where the job was submitted, and its number, with that of an element of a job array
#     hosts, cpus                 arrays: nodes of the job, and its CPUs there; those of a node that is listed twice are added up
#     gpus, memory_gib            GPUs on each node (0: a worker without), and memory of the job there
#     graph, source, result, out, interface
#     launch NUMBER HOST COMMAND  a function that runs a command on the node with this number in `hosts`, by `exec` of what waits for it

set -euo pipefail
export DASK_CONFIG=${DASK_CONFIG:-$settings}
[[ $DASK_CONFIG == /* ]] || DASK_CONFIG=$folder/$DASK_CONFIG
if [ ! -e "$DASK_CONFIG" ]; then
    echo "no $DASK_CONFIG; submit from the folder that holds it, or name it in DASK_CONFIG" >&2
    exit 2
fi
start=0
until error=$(mkdir -m 700 "$folder/oocgraph-$job.$start" 2>&1); do
    if [ ! -e "$folder/oocgraph-$job.$start" ]; then
        echo "$error" >&2
        exit 2
    fi
    start=$((start + 1))
done
run=$folder/oocgraph-$job.$start    # the scheduler's address and logs of this start

# One worker process on a node, however often it is listed: memory_gib is the job's there.
declare -A first=()
for number in "${!hosts[@]}"; do
    known=${first[${hosts[number]}]:=$number}
    if ((known != number)); then
        cpus[known]=$((cpus[known] + cpus[number]))
        unset "hosts[number]"
    fi
done

# Memory of a worker: its share of what the job has on a node, less 1 GiB for the scheduler and the search.
on_node=$((gpus > 0 ? gpus : 1))
workers=$((${#hosts[@]} * on_node))
worker_mib=$(((memory_gib - 1) * 1024 / on_node))
if ((worker_mib < 512)); then
    echo "a worker would have $worker_mib MiB of the $memory_gib GiB on a node; ask for more, and set memory_gib to it" >&2
    exit 2
fi

# However the script ends, the scheduler ends, and tells its workers to. Those that still look for it are ended after five seconds, and
# what is there after ten the batch system ends.
code=1 search= scheduler= nodes=
finish() {
    trap - EXIT
    rm -f "$run/worker.sh" || true
    kill $search $scheduler || true
    for tenth in {1..100}; do
        [ -n "$(jobs -pr)" ] || break
        ((tenth != 50)) || kill $nodes || true
        sleep 0.1
    done
} 2>/dev/null
trap finish EXIT
trap 'exit 143' TERM

# Batch systems hand on little of a job's environment. What workers run is a file that brings it along, but for what is of one node.
# It may hold secrets, so only the user can read it, and it goes with the job. Workers may start in another folder.
absolute() {    # LIST: its relative entries are of this folder
    local entry list=
    while IFS= read -rd: entry; do
        [[ $entry == /* ]] || entry=$folder/$entry
        list+=:$entry
    done <<<"$1:"
    echo "${list#:}"
}
(
    umask 077
    exec >"$run/worker.sh"
    unset "${!PBS_@}" "${!LSB_@}" "${!SGE_@}" PE_HOSTFILE TMPDIR HOSTNAME CUDA_VISIBLE_DEVICES
    PATH=$(absolute "$PATH")
    [ -z "${PYTHONPATH:-}" ] || PYTHONPATH=$(absolute "$PYTHONPATH")
    export -p
    printf "run=%q worker_mib=%d on_node=%d program=%q\n" "$run" "$worker_mib" "$on_node" "dask $( ((gpus == 0)) || echo cuda) worker"
    cat <<'WORKER'
threads=$(($1 > on_node ? $1 / on_node : 1))
name=$(hostname -s)-$$
exec $program --scheduler-file "$run/scheduler.json" --name "$name" --nthreads "$threads" --memory-limit "${worker_mib}MiB" \
    --local-directory "${TMPDIR:-/tmp}" --death-timeout 60 --no-dashboard >"$run/worker-$name.log" 2>&1
WORKER
)

where=(--host "${hosts[0]}")
[ -z "$interface" ] || where=(--interface "$interface")
dask scheduler --scheduler-file "$run/scheduler.json" "${where[@]}" --port 0 --dashboard-address :0 >"$run/scheduler.log" 2>&1 &
scheduler=$!

# One that dies does not end the others; one that finds no scheduler ends.
on_every_node() {
    trap 'kill $(jobs -p) 2>/dev/null || true; wait; exit' TERM
    for number in "${!hosts[@]}"; do
        launch "$number" "${hosts[number]}" /bin/bash "$run/worker.sh" "${cpus[number]}" &
    done
    wait
}
on_every_node &
nodes=$!

# A search that goes on where its result is replaces what it has written; one that begins replaces nothing.
overwrite=
[ ! -e "$result" ] || overwrite=--overwrite
oocgraph bfs "$graph" --source "$source" --scheduler "$run/scheduler.json" --workers "$workers" --resume "$result" \
    --out "$out" $overwrite &
search=$!

# The search should end first. Its exit code is the job's.
wait -n || true
if kill -0 "$search" 2>/dev/null; then
    echo "the scheduler or every worker has ended before the search; see $run" >&2
else
    wait "$search" && code=0 || code=$?
fi
exit "$code"
