def get_info():
    return {"backend_name": "oocgraph", "functions": {}}
